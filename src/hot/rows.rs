//! The table of accounts' own queues.

use std::time::Duration;

use sqlx::{PgConnection, PgPool, PgTransaction};

use super::list::{Listed, State};
use crate::domain::{AccountId, HotQueue, Lane};

/// What is written of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub queue: HotQueue,
    pub state: State,
    pub version: i64,
    /// How long it has been in this state.
    pub changed: Duration,
    /// How long no job has waited for the account's ceiling.
    pub pressed: Duration,
}

/// Begins a transaction that alone may take steps for an account's queue in a lane, unless another
/// one may just now.
pub(super) async fn lock(
    pool: &PgPool,
    prefix: &str,
    lane: Lane,
    account: &AccountId,
) -> sqlx::Result<Option<PgTransaction<'static>>> {
    let mut transaction = pool.begin().await?;
    let key = format!("{prefix}.{lane}.hot.{account}");
    let mine = sqlx::query_scalar!(
        r#"SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0)) AS "mine!""#,
        key,
    );
    let mine = mine.fetch_one(&mut *transaction).await?;
    Ok(mine.then_some(transaction))
}

/// The row of an account's queue in a lane.
pub(super) async fn find(
    connection: &mut PgConnection,
    prefix: &str,
    lane: Lane,
    account: &AccountId,
) -> sqlx::Result<Option<Row>> {
    let row = sqlx::query!(
        r#"SELECT number, state, version,
            extract(epoch FROM clock_timestamp() - changed_at)::float8 AS "changed!",
            extract(epoch FROM clock_timestamp() - pressed_at)::float8 AS "pressed!"
        FROM hot_queues WHERE prefix = $1 AND lane = $2 AND account_id = $3"#,
        prefix,
        lane.as_str(),
        account.as_str(),
    );
    let row = row.fetch_optional(connection).await?;
    Ok(row.and_then(|row| {
        Some(Row {
            queue: HotQueue {
                lane,
                account: account.clone(),
                number: row.number,
            },
            state: State::parse(&row.state)?,
            version: row.version,
            changed: seconds(row.changed),
            pressed: seconds(row.pressed),
        })
    }))
}

/// A clock that was set back makes no age negative.
fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

/// Writes a new row, unless there are as many as there may be.
pub(super) async fn add(
    connection: &mut PgConnection,
    prefix: &str,
    lane: Lane,
    account: &AccountId,
    most: u32,
) -> sqlx::Result<Option<Row>> {
    // Two that add one for different accounts must not both find room for the last.
    sqlx::query!("LOCK TABLE hot_queues IN SHARE ROW EXCLUSIVE MODE")
        .execute(&mut *connection)
        .await?;
    let row = sqlx::query!(
        "INSERT INTO hot_queues (prefix, lane, account_id)
        SELECT $1, $2, $3 WHERE (SELECT count(*) FROM hot_queues WHERE prefix = $1) < $4
        RETURNING number, version",
        prefix,
        lane.as_str(),
        account.as_str(),
        i64::from(most),
    );
    let row = row.fetch_optional(connection).await?;
    Ok(row.map(|row| Row {
        queue: HotQueue {
            lane,
            account: account.clone(),
            number: row.number,
        },
        state: State::New,
        version: row.version,
        changed: Duration::ZERO,
        pressed: Duration::ZERO,
    }))
}

/// Takes note that a step begins: whoever has not seen it takes none. Gives the row as it is then.
pub(super) async fn claim(connection: &mut PgConnection, row: Row) -> sqlx::Result<Row> {
    let version = sqlx::query_scalar!(
        "UPDATE hot_queues SET version = version + 1, pressed_at = clock_timestamp()
        WHERE number = $1 RETURNING version",
        row.queue.number,
    );
    let version = version.fetch_one(connection).await?;
    Ok(Row { version, ..row })
}

/// Moves a row on to another state; false when somebody else has taken a step since it was read.
pub(super) async fn become_state(
    connection: &mut PgConnection,
    row: &Row,
    state: State,
) -> sqlx::Result<bool> {
    let done = sqlx::query!(
        "UPDATE hot_queues SET state = $3, version = version + 1, changed_at = clock_timestamp(),
            pressed_at = CASE $3 WHEN 'open' THEN clock_timestamp() ELSE pressed_at END
        WHERE number = $1 AND version = $2",
        row.queue.number,
        row.version,
        state.as_str(),
    );
    Ok(done.execute(connection).await?.rows_affected() == 1)
}

/// Fails when the lock is lost, and keeps it otherwise: the database ends a transaction in which nothing
/// is asked for long.
pub(super) async fn still_mine(connection: &mut PgConnection, number: i64) -> sqlx::Result<()> {
    sqlx::query_scalar!("SELECT version FROM hot_queues WHERE number = $1", number)
        .fetch_one(connection)
        .await
        .map(drop)
}

/// Forgets a queue that is gone.
pub(super) async fn forget(connection: &mut PgConnection, number: i64) -> sqlx::Result<()> {
    let forgetting = sqlx::query!(
        "DELETE FROM hot_queues WHERE number = $1 AND state = 'closing'",
        number
    );
    forgetting.execute(connection).await.map(drop)
}

/// Notes that jobs wait for their accounts' ceilings now.
pub(super) async fn touch(connection: &mut PgConnection, numbers: &[i64]) -> sqlx::Result<()> {
    let touching = sqlx::query!(
        "UPDATE hot_queues SET pressed_at = clock_timestamp() WHERE number = ANY($1)",
        numbers
    );
    touching.execute(connection).await.map(drop)
}

/// The version of the list of queues: it grows with each change.
pub(super) async fn version(connection: &mut PgConnection) -> sqlx::Result<i64> {
    sqlx::query_scalar!("SELECT version FROM hot_queues_version")
        .fetch_one(connection)
        .await
}

/// Every queue of a prefix.
pub(super) async fn all(connection: &mut PgConnection) -> sqlx::Result<Vec<(String, Listed)>> {
    let rows = sqlx::query!(
        r#"SELECT prefix, number, lane, account_id, state, EXISTS (
            SELECT FROM holds WHERE holds.account_id = hot_queues.account_id
                AND kind = 'account' AND target = hot_queues.account_id AND holds.state = 'paused'
        ) AS "paused!" FROM hot_queues ORDER BY number"#
    );
    let rows = rows.fetch_all(connection).await?;
    let listed = rows.into_iter().filter_map(|row| {
        let queue = HotQueue {
            lane: Lane::parse(&row.lane)?,
            account: AccountId::parse(&row.account_id).ok()?,
            number: row.number,
        };
        let listed = Listed {
            queue,
            state: State::parse(&row.state)?,
            paused: row.paused,
        };
        Some((row.prefix, listed))
    });
    Ok(listed.collect())
}
