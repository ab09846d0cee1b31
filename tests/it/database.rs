//! Questions to PostgreSQL end in time whatever happens to it, and are answered again at once.

use std::process::Command;
use std::time::Duration;

use lanekeeper::dispatch::ports::RecordsError;
use lanekeeper::postgres::Database;
use sqlx::Executor as _;
use tokio::time::Instant;

use crate::support::postgres::{PrivatePostgres, TestDatabase, database_settings};
use crate::support::redis::RedisServer;
use crate::support::road::Road;
use crate::support::{amqp_url, eventually, redis_url};

async fn ask(database: &Database) -> Result<i64, RecordsError> {
    let asking = database.ask(async |connection| {
        let question = sqlx::query_scalar("SELECT version FROM directory");
        question.fetch_one(connection).await
    });
    must_be_send(asking).await
}

/// The pipeline's tasks move between threads.
fn must_be_send<F: Future + Send>(future: F) -> F {
    future
}

async fn assert_fails_in_time(database: &Database) -> RecordsError {
    let began = Instant::now();
    let error = ask(database).await.unwrap_err();
    let took = began.elapsed();
    // A busy machine is late, but not by a whole limit.
    assert!(took < database.limit() * 2, "{took:?}");
    error
}

#[tokio::test]
async fn a_stopped_server_is_noticed_in_time_and_its_return_at_once() {
    let mut server = PrivatePostgres::start_migrated().await;
    let database = server.database();
    assert_eq!(ask(&database).await, Ok(1));
    server.stop().await;
    let error = assert_fails_in_time(&database).await;
    assert_eq!(error, RecordsError::Unreachable);
    server.restart().await;
    assert_eq!(ask(&database).await, Ok(1));
}

/// With every connection in use when it happens.
#[tokio::test]
async fn a_frozen_server_is_noticed_in_time_and_its_return_at_once() {
    let mut server = PrivatePostgres::start_migrated().await;
    let database = server.database();
    let all = || async {
        let asking = (0..8).map(|_| ask(&database));
        futures_util::future::join_all(asking).await
    };
    assert_eq!(all().await, [Ok(1); 8]);
    server.freeze();
    for _ in 0..2 {
        let began = Instant::now();
        assert!(all().await.iter().all(Result::is_err));
        assert!(began.elapsed() < database.limit() * 2);
    }
    server.thaw();
    assert_eq!(all().await, [Ok(1); 8]);
}

/// The server neither refuses nor answers, as behind a firewall that forgot the connections: none of
/// those that the pool has kept is of use any more.
#[tokio::test]
async fn connections_that_died_in_silence_are_replaced_within_one_question() {
    let server = PrivatePostgres::start_migrated().await;
    let road = Road::to(server.port()).await;
    let url = format!("postgres://lanekeeper@127.0.0.1:{}/lanekeeper", road.port());
    let mut settings = database_settings(&url);
    // Half of it is for eight new connections, on a machine that may be busy.
    settings.timeout = Duration::from_secs(6);
    settings.connect_timeout = Duration::from_secs(6);
    let database = Database::open(&settings).unwrap();
    let asking = (0..8).map(|_| ask(&database));
    assert_eq!(futures_util::future::join_all(asking).await, [Ok(1); 8]);
    road.forget_connections();
    // Only what has been idle is doubted.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let asking = (0..8).map(|_| ask(&database));
    assert_eq!(futures_util::future::join_all(asking).await, [Ok(1); 8]);
}

#[tokio::test]
async fn a_locked_table_costs_one_time_limit_here_and_at_the_server() {
    let test = TestDatabase::create().await;
    let database = test.database();
    let mut locking = test.pool().begin().await.unwrap();
    let lock = "LOCK TABLE directory IN ACCESS EXCLUSIVE MODE";
    locking.execute(lock).await.unwrap();
    let error = assert_fails_in_time(&database).await;
    assert_eq!(error, RecordsError::TimedOut);
    eventually(
        "the server has given up too",
        database.limit() * 2,
        async || {
            let waiting = sqlx::query_scalar::<_, i64>(
                "SELECT count(*) FROM pg_stat_activity
             WHERE datname = current_database() AND wait_event_type = 'Lock'",
            );
            waiting.fetch_one(test.pool()).await.unwrap() == 0
        },
    )
    .await;
    locking.rollback().await.unwrap();
    assert_eq!(ask(&database).await, Ok(1));
}

#[tokio::test]
async fn a_server_without_a_free_connection_is_no_reason_to_wait() {
    let server = PrivatePostgres::start_migrated().await;
    let pool = server.pool();
    let limit = "ALTER DATABASE lanekeeper CONNECTION LIMIT 1; CREATE ROLE plain LOGIN;
                 GRANT pg_read_all_data TO plain";
    pool.execute(limit).await.unwrap();
    let _the_only_one = pool.acquire().await.unwrap();
    let database = Database::open(&database_settings(&server.url_as("plain"))).unwrap();
    let error = assert_fails_in_time(&database).await;
    assert_eq!(error, RecordsError::Unreachable);
}

/// Twenty questions at a time over two connections, half of them given up half-way.
#[tokio::test]
async fn questions_that_nobody_waits_for_take_no_connection_with_them() {
    let test = TestDatabase::create().await;
    let mut settings = database_settings(test.url());
    settings.connections = 2;
    let database = Database::open(&settings).unwrap();
    for _ in 0..10 {
        let short = Duration::from_millis(5);
        let asking = (0..20).map(|number| {
            let database = &database;
            async move {
                let asking = database.ask(async |connection| {
                    connection.execute("SELECT pg_sleep(0.01)").await.map(drop)
                });
                if number % 2 == 0 {
                    drop(tokio::time::timeout(short, asking).await);
                    return Ok(());
                }
                asking.await
            }
        });
        let answers = futures_util::future::join_all(asking).await;
        assert_eq!(answers, [Ok(()); 20]);
    }
    assert_eq!(ask(&database).await, Ok(1));
}

#[tokio::test]
async fn errors_of_the_question_itself_are_told_from_those_of_the_server() {
    let test = TestDatabase::create().await;
    let database = test.database();
    let wrong = database.ask(async |connection| {
        let question = sqlx::query("SELECT nothing FROM nowhere");
        question.execute(connection).await
    });
    assert_eq!(wrong.await.unwrap_err(), RecordsError::Failed);
    let slow = database.ask(async |connection| {
        connection.execute("SET statement_timeout = 20").await?;
        connection.execute("SELECT pg_sleep(10)").await
    });
    assert_eq!(slow.await.unwrap_err(), RecordsError::TimedOut);
}

#[tokio::test]
async fn sessions_carry_the_programs_name() {
    let test = TestDatabase::create().await;
    let database = test.database();
    let named = database.ask(async |connection| {
        let name = sqlx::query_scalar::<_, String>("SELECT current_setting('application_name')");
        name.fetch_one(connection).await
    });
    assert_eq!(named.await.as_deref(), Ok("lanekeeper"));
}

fn check(url: &str) -> String {
    check_with(url, &[])
}

fn check_with(url: &str, settings: &[(&str, &str)]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_lanekeeper"))
        .arg("check")
        .env_clear()
        .env("LANEKEEPER__AMQP__URL", amqp_url())
        .env("LANEKEEPER__REDIS__URL", redis_url())
        .env("LANEKEEPER__DATABASE__URL", url)
        .envs(settings.iter().copied())
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn check_says_whether_the_schema_is_up_to_date() {
    let test = TestDatabase::create().await;
    let found = check(test.url());
    assert!(found.contains("ok    database"), "{found}");
    assert!(found.contains("its schema is up to date"), "{found}");
    assert!(!found.contains("none is configured"), "{found}");
    let empty = TestDatabase::empty().await;
    let found = check(empty.url());
    assert!(found.contains("FAIL  database"), "{found}");
    assert!(
        found.contains("behind: run `lanekeeper migrate`"),
        "{found}"
    );
    let found = check_with(empty.url(), &[("LANEKEEPER__DATABASE__MIGRATE", "true")]);
    assert!(found.contains("ok    database"), "{found}");
    assert!(
        found.contains("which a worker that starts will apply"),
        "{found}"
    );
}

#[tokio::test]
async fn check_names_what_is_wrong_and_shows_no_secret() {
    let test = TestDatabase::create().await;
    let mut url = url::Url::parse(test.url()).unwrap();
    url.set_password(Some("S3NTINEL")).unwrap();
    let wrong_password = check(url.as_str());
    let expected = "user or password is wrong";
    assert!(wrong_password.contains(expected), "{wrong_password}");
    let mut url = url::Url::parse(test.url()).unwrap();
    url.set_path("nowhere");
    let no_database = check(url.as_str());
    let expected = "/nowhere: the database does not exist; create it first";
    assert!(no_database.contains(expected), "{no_database}");
    let redis = RedisServer::start().await;
    let another = format!("postgres://user:S3NTINEL@127.0.0.1:{}", redis.port());
    let another = check(&another);
    assert!(another.contains("is this a Redis port?"), "{another}");
    for text in [wrong_password, no_database, another] {
        assert!(!text.contains("S3NTINEL"), "{text}");
    }
}
