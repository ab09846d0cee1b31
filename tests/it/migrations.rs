//! The schema: brought up to date once, however many want it.

use std::time::Duration;

use lanekeeper::dispatch::ports::RecordsError;
use sqlx::Executor as _;
use tokio::time::Instant;

use crate::support::postgres::{PrivatePostgres, TestDatabase};

async fn assert_send<T: Send>(future: impl Future<Output = T> + Send) -> T {
    future.await
}

#[tokio::test]
async fn a_test_database_has_the_whole_schema() {
    let database = TestDatabase::create().await;
    let counted = sqlx::query_scalar::<_, i64>("SELECT version FROM directory");
    assert_eq!(counted.fetch_one(database.pool()).await.unwrap(), 1);
    let other = TestDatabase::create().await;
    database
        .execute("UPDATE directory SET unknown_accounts = 'refuse'")
        .await;
    let untouched = sqlx::query_scalar::<_, i64>("SELECT version FROM directory");
    assert_eq!(untouched.fetch_one(other.pool()).await.unwrap(), 1);
}

#[tokio::test]
async fn a_frozen_or_stopped_server_is_noticed_in_time_and_its_return_at_once() {
    let mut server = PrivatePostgres::start_migrated().await;
    let database = server.database();
    let ask = || {
        assert_send(database.ask(async |connection| {
            let asked = sqlx::query_scalar::<_, i64>("SELECT version FROM directory");
            asked.fetch_one(connection).await
        }))
    };
    assert_eq!(ask().await, Ok(1));
    server.freeze();
    let began = Instant::now();
    assert!(ask().await.is_err());
    assert!(began.elapsed() < database.limit() * 2);
    server.thaw();
    assert_eq!(ask().await, Ok(1));
    server.stop().await;
    assert_eq!(ask().await, Err(RecordsError::Unreachable));
    server.restart().await;
    assert_eq!(ask().await, Ok(1));
}
