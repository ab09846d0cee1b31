//! Accounts' own queues, as the database lists them.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use lapin::options::QueueDeleteOptions;
use sqlx::PgPool;
use tokio::time::Instant;

use super::eventually;
use super::rabbit::connection;

/// Those that one database lists.
#[derive(Clone)]
pub struct HotQueues {
    pool: PgPool,
}

impl HotQueues {
    /// Those that this pool's database lists.
    pub fn of(pool: &PgPool) -> Self {
        Self { pool: pool.clone() }
    }

    /// Since when each account's jobs have been sent to its own queue of a lane.
    pub async fn open_since(&self, lane: &str) -> HashMap<String, Timestamp> {
        let select = "SELECT account_id, floor(extract(epoch FROM changed_at) * 1000)::bigint
             FROM hot_queues WHERE state = 'open' AND lane = $1";
        let select = sqlx::query_as::<_, (String, i64)>(select).bind(lane);
        let rows = select.fetch_all(&self.pool).await.unwrap();
        rows.into_iter()
            .map(|(account, ms)| (account, Timestamp::from_millisecond(ms).unwrap()))
            .collect()
    }

    /// Waits until so many accounts have queues of their own in a lane; gives how long it took.
    ///
    /// # Panics
    /// When they do not within `limit`.
    pub async fn await_open(&self, lane: &str, accounts: usize, limit: Duration) -> Duration {
        let began = Instant::now();
        let what = format!("{accounts} accounts have queues of their own");
        let open = async || self.open_since(lane).await.len() >= accounts;
        eventually(&what, limit, open).await;
        began.elapsed()
    }

    /// Waits until there are spare queues of both lanes, as a worker makes them that has run for a few
    /// seconds.
    ///
    /// # Panics
    /// When there are none within `limit`.
    pub async fn await_spare(&self, limit: Duration) {
        let select = "SELECT count(DISTINCT lane) FROM hot_queues WHERE state = 'spare'";
        let spare = async || {
            let lanes: i64 = sqlx::query_scalar(select)
                .fetch_one(&self.pool)
                .await
                .unwrap();
            lanes == 2
        };
        eventually("there are spare queues", limit, spare).await;
    }

    /// Deletes them at the broker, once no worker runs, so that a shared one stays small.
    pub async fn remove(&self, url: &str) {
        let select = "SELECT prefix || '.' || lane || '.hot.' || number FROM hot_queues";
        let names: Vec<String> = sqlx::query_scalar(select)
            .fetch_all(&self.pool)
            .await
            .unwrap();
        let connection = connection(url).await;
        let channel = connection.create_channel().await.unwrap();
        for name in names {
            let deleted = channel.queue_delete(name.into(), QueueDeleteOptions::default());
            deleted.await.unwrap();
        }
    }
}
