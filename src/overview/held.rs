//! What waits of an account, and what of it is paused.

use jiff::Timestamp;
use sqlx::PgConnection;

use crate::accounts::hold_name;
use crate::dispatch::ports::RecordsError;
use crate::domain::{AccountId, Lane};
use crate::embedded::MemoryRecords;
use crate::postgres::Database;

/// Waiting jobs are counted up to so many of those with an instant, and so many of those without.
const COUNTED: i64 = 10_000;

/// How many of the things that are paused are shown.
pub(super) const SHOWN: usize = 50;

/// What waits of one lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WaitingNow {
    /// Jobs.
    pub jobs: u64,
    /// When the oldest of those that were counted was queued first.
    pub since: Option<Timestamp>,
}

/// Something that is paused or cancelled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldNow {
    /// `account`, `campaign`, `journey` or `batch`.
    pub kind: &'static str,
    /// Its id.
    pub id: String,
    /// `paused` or `cancelled`.
    pub state: &'static str,
    /// Why.
    pub reason: Option<String>,
    /// Since when.
    pub since: Option<Timestamp>,
}

/// What waits, and what is paused.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Held {
    /// What waits, by lane in drain order.
    pub waiting: [WaitingNow; 2],
    /// What is paused or cancelled, the newest first; one more than is shown, where there are more.
    pub holds: Vec<HoldNow>,
}

/// Where it is written down.
#[derive(Debug)]
pub enum HeldStore {
    /// In PostgreSQL.
    Postgres(Database),
    /// In this process.
    Memory(MemoryRecords),
    /// Nowhere: without a database nothing waits and nothing is paused.
    Nowhere,
}

impl HeldStore {
    /// What waits of an account, and what of it is paused.
    ///
    /// # Errors
    /// When the database does not say.
    pub async fn of(&self, account: &AccountId) -> Result<Held, RecordsError> {
        match self {
            Self::Postgres(database) => {
                let asking = database.ask(async |connection| ask(connection, account).await);
                asking.await
            }
            Self::Memory(records) => Ok(records.held(account, SHOWN + 1)),
            Self::Nowhere => Ok(Held::default()),
        }
    }
}

async fn ask(connection: &mut PgConnection, account: &AccountId) -> Result<Held, sqlx::Error> {
    Ok(Held {
        waiting: waiting(connection, account).await?,
        holds: holds(connection, account).await?,
    })
}

/// Two partial indexes hold the rows of a lane: each gives up to a limit, so that a million rows cost
/// no more than as many as are counted.
async fn waiting(
    connection: &mut PgConnection,
    account: &AccountId,
) -> Result<[WaitingNow; 2], sqlx::Error> {
    let rows = sqlx::query!(
        r#"
        SELECT lanes.lane AS "lane!", count(*) FILTER (WHERE rows.since_ms IS NOT NULL) AS "jobs!",
            min(rows.since_ms) AS since_ms
        FROM (VALUES ('transactional'), ('marketing')) AS lanes (lane)
        LEFT JOIN LATERAL (
            (SELECT coalesce(enqueued_ms, (extract(epoch FROM since) * 1000)::bigint) AS since_ms
             FROM waiting
             WHERE account_id = $1 AND lane = lanes.lane AND due_at IS NOT NULL LIMIT $2)
            UNION ALL
            (SELECT coalesce(enqueued_ms, (extract(epoch FROM since) * 1000)::bigint)
             FROM waiting
             WHERE account_id = $1 AND lane = lanes.lane AND due_at IS NULL LIMIT $2)
        ) AS rows ON true
        GROUP BY lanes.lane
        "#,
        account.as_str(),
        COUNTED,
    );
    let mut waiting = [WaitingNow::default(); 2];
    for row in rows.fetch_all(connection).await? {
        if let Some(lane) = Lane::parse(&row.lane) {
            waiting[lane.index()] = WaitingNow {
                jobs: u64::try_from(row.jobs).unwrap_or(0),
                since: row
                    .since_ms
                    .and_then(|ms| Timestamp::from_millisecond(ms).ok()),
            };
        }
    }
    Ok(waiting)
}

async fn holds(
    connection: &mut PgConnection,
    account: &AccountId,
) -> Result<Vec<HoldNow>, sqlx::Error> {
    let most = i64::try_from(SHOWN + 1).unwrap_or(i64::MAX);
    let holds = crate::accounts::tables::holds::newest(connection, account, most).await?;
    let now = |record: crate::accounts::tables::holds::HoldRecord| HoldNow {
        kind: record.on.kind.as_str(),
        id: record.on.target,
        state: hold_name(record.hold),
        reason: record.reason,
        since: Some(record.since),
    };
    Ok(holds.into_iter().map(now).collect())
}
