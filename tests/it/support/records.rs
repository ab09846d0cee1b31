//! What an operator writes into the database, and what is to be found there afterwards.

use std::collections::BTreeMap;
use std::time::Duration;

use sqlx::postgres::PgPool;
use sqlx::{Executor as _, FromRow};
use tokio::time::Instant;

use super::eventually;

/// The tables of one database.
#[derive(Clone)]
pub struct Records {
    pool: PgPool,
}

/// A row of the ledger, as far as tests look at it.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct Entry {
    pub outcome: String,
    pub reason: Option<String>,
    pub lane: String,
    pub attempts: i32,
    pub sheds: i32,
    /// In milliseconds since the Unix epoch.
    pub next_allowed: Option<i64>,
}

/// A row of `waiting`.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct Row {
    pub reason: String,
    pub lane: String,
    pub attempts: i32,
    pub sheds: i32,
    /// In milliseconds since the Unix epoch.
    pub due: Option<i64>,
}

impl Records {
    /// Those that this pool leads to.
    pub fn of(pool: &PgPool) -> Self {
        Self { pool: pool.clone() }
    }

    /// Runs statements, which must succeed. Gives an instant shortly before they were committed:
    /// what is measured from there is not measured too kindly.
    pub async fn commit(&self, statements: &str) -> Instant {
        let sent = Instant::now();
        self.pool.execute(statements).await.unwrap();
        sent
    }

    /// An account with a budget, whose reserve is a fifth of it.
    pub async fn account(&self, account: &str, per_second: i32) {
        let insert = "INSERT INTO accounts (account_id, budget_per_second) VALUES ($1, $2)";
        let insert = sqlx::query(insert).bind(account).bind(per_second);
        insert.execute(&self.pool).await.unwrap();
    }

    /// So many messages a day to each recipient.
    pub async fn daily_cap(&self, account: &str, max_messages: i32) {
        let insert = "INSERT INTO frequency_caps (account_id, name, max_messages, window_seconds)
                      VALUES ($1, 'daily', $2, 86400)";
        let insert = sqlx::query(insert).bind(account).bind(max_messages);
        insert.execute(&self.pool).await.unwrap();
    }

    /// A ceiling of a `number` or a `service`.
    pub async fn ceiling(&self, account: &str, kind: &str, target: &str, per_second: i32) {
        let insert = "INSERT INTO ceilings VALUES ($1, $2, $3, $4)";
        let insert = sqlx::query(insert).bind(account).bind(kind).bind(target);
        insert.bind(per_second).execute(&self.pool).await.unwrap();
    }

    /// Pauses or cancels an account, campaign, journey or batch. Gives an instant shortly before.
    pub async fn hold(&self, account: &str, kind: &str, target: &str, state: &str) -> Instant {
        let insert = "INSERT INTO holds (account_id, kind, target, state) VALUES ($1, $2, $3, $4)
             ON CONFLICT (account_id, kind, target) DO UPDATE SET state = excluded.state";
        let insert = sqlx::query(insert).bind(account).bind(kind);
        let insert = insert.bind(target).bind(state);
        let sent = Instant::now();
        insert.execute(&self.pool).await.unwrap();
        sent
    }

    /// The ledger's rows of one job.
    pub async fn entries(&self, account: &str, id: &str) -> Vec<Entry> {
        let select = "SELECT outcome, reason, lane, attempts, sheds,
                floor(extract(epoch FROM next_allowed_at) * 1000)::bigint AS next_allowed
             FROM ledger WHERE account_id = $1 AND id = $2";
        let select = sqlx::query_as(select).bind(account).bind(id);
        select.fetch_all(&self.pool).await.unwrap()
    }

    /// How many jobs the ledger says ended in each way: outcome and reason.
    pub async fn ends(&self) -> BTreeMap<(String, String), usize> {
        let select = "SELECT outcome, coalesce(reason, ''), count(*) FROM ledger GROUP BY 1, 2";
        let rows: Vec<(String, String, i64)> =
            sqlx::query_as(select).fetch_all(&self.pool).await.unwrap();
        let end = |(outcome, reason, count)| ((outcome, reason), usize::try_from(count).unwrap());
        rows.into_iter().map(end).collect()
    }

    /// How many jobs the ledger knows to have ended so.
    pub async fn ended(&self, outcome: &str, reason: &str) -> usize {
        let key = (outcome.to_owned(), reason.to_owned());
        self.ends().await.remove(&key).unwrap_or(0)
    }

    /// Waits until the ledger has so many rows, and makes sure that no job has two.
    ///
    /// # Panics
    /// When it does not have exactly so many within `limit`, or a job has several.
    pub async fn await_entries(&self, jobs: usize, limit: Duration) {
        let what = format!("{jobs} rows in the ledger");
        let reached = async || self.entry_count().await >= jobs;
        eventually(&what, limit, reached).await;
        assert_eq!(self.entry_count().await, jobs);
        let distinct = "SELECT count(DISTINCT (account_id, id)) FROM ledger";
        assert_eq!(self.count(distinct).await, jobs);
    }

    async fn entry_count(&self) -> usize {
        self.count("SELECT count(*) FROM ledger").await
    }

    /// The waiting rows of one job.
    pub async fn waits(&self, account: &str, id: &str) -> Vec<Row> {
        let select = "SELECT reason, lane, attempts, sheds,
                floor(extract(epoch FROM due_at) * 1000)::bigint AS due
             FROM waiting WHERE account_id = $1 AND id = $2";
        let select = sqlx::query_as(select).bind(account).bind(id);
        select.fetch_all(&self.pool).await.unwrap()
    }

    /// How many jobs wait.
    pub async fn waiting(&self) -> usize {
        self.count("SELECT count(*) FROM waiting").await
    }

    /// How many jobs wait for this reason.
    pub async fn waiting_for(&self, reason: &str) -> usize {
        let select = "SELECT count(*) FROM waiting WHERE reason = $1";
        let select = sqlx::query_scalar::<_, i64>(select).bind(reason);
        usize::try_from(select.fetch_one(&self.pool).await.unwrap()).unwrap()
    }

    async fn count(&self, select: &str) -> usize {
        let count = sqlx::query_scalar::<_, i64>(select);
        usize::try_from(count.fetch_one(&self.pool).await.unwrap()).unwrap()
    }
}
