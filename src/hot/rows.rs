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
    lock_key(pool, &format!("{prefix}.{lane}.hot.{account}")).await
}

/// The same for the spare queues of a lane.
pub(super) async fn lock_spares(
    pool: &PgPool,
    prefix: &str,
    lane: Lane,
) -> sqlx::Result<Option<PgTransaction<'static>>> {
    // No account's id has a dot.
    lock_key(pool, &format!("{prefix}.{lane}.spare.queues")).await
}

async fn lock_key(pool: &PgPool, key: &str) -> sqlx::Result<Option<PgTransaction<'static>>> {
    let mut transaction = pool.begin().await?;
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

/// What was found for an account that needs a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Assigned {
    /// This one is its own from now on.
    Queue(HotQueue),
    /// As many accounts as may have queues of their own.
    TooMany,
    /// There is no spare one just now.
    NoneSpare,
}

/// The accounts whose queues have a step towards their end before them: open ones of which no job has
/// waited for `idle`, those that have been draining for `settle`, and whatever is closing.
pub(super) async fn due(
    connection: &mut PgConnection,
    prefix: &str,
    idle: Duration,
    settle: Duration,
) -> sqlx::Result<Vec<(Lane, AccountId)>> {
    let rows = sqlx::query!(
        r#"SELECT lane, account_id AS "account_id!" FROM hot_queues
        WHERE prefix = $1 AND account_id IS NOT NULL AND (state = 'closing'
            OR state = 'open' AND pressed_at < clock_timestamp() - make_interval(secs => $2)
            OR state = 'draining' AND changed_at < clock_timestamp() - make_interval(secs => $3))
        ORDER BY number"#,
        prefix,
        idle.as_secs_f64(),
        settle.as_secs_f64(),
    );
    let rows = rows.fetch_all(connection).await?.into_iter();
    let due = rows.filter_map(|row| {
        Some((
            Lane::parse(&row.lane)?,
            AccountId::parse(&row.account_id).ok()?,
        ))
    });
    Ok(due.collect())
}

/// The oldest spare queue of a lane.
pub(super) async fn oldest_spare(
    connection: &mut PgConnection,
    prefix: &str,
    lane: Lane,
) -> sqlx::Result<Option<i64>> {
    let oldest = sqlx::query_scalar!(
        "SELECT number FROM hot_queues WHERE prefix = $1 AND lane = $2 AND state = 'spare'
        ORDER BY number LIMIT 1",
        prefix,
        lane.as_str(),
    );
    oldest.fetch_optional(connection).await
}

/// Forgets a spare queue; false when it is no longer one.
pub(super) async fn forget_spare(connection: &mut PgConnection, number: i64) -> sqlx::Result<bool> {
    let forgetting = sqlx::query!(
        "DELETE FROM hot_queues WHERE number = $1 AND state = 'spare'",
        number
    );
    Ok(forgetting.execute(connection).await?.rows_affected() == 1)
}

/// Makes a spare queue an account's, and opens it, where no more than `most` accounts have one and
/// nobody else has got it meanwhile.
pub(super) async fn assign(
    connection: &mut PgConnection,
    prefix: &str,
    lane: Lane,
    account: &AccountId,
    most: u32,
    spare: Option<i64>,
) -> sqlx::Result<Assigned> {
    // Two accounts must not both get the last one that there may be.
    sqlx::query!("LOCK TABLE hot_queues IN SHARE ROW EXCLUSIVE MODE")
        .execute(&mut *connection)
        .await?;
    let taken = sqlx::query_scalar!(
        r#"SELECT count(account_id) AS "taken!" FROM hot_queues WHERE prefix = $1"#,
        prefix
    );
    if taken.fetch_one(&mut *connection).await? >= i64::from(most) {
        return Ok(Assigned::TooMany);
    }
    let Some(number) = spare else {
        return Ok(Assigned::NoneSpare);
    };
    let assigning = sqlx::query!(
        "UPDATE hot_queues SET account_id = $2, state = 'open', version = version + 1,
            changed_at = clock_timestamp(), pressed_at = clock_timestamp()
        WHERE number = $1 AND state = 'spare'",
        number,
        account.as_str(),
    );
    let is_assigned = assigning.execute(connection).await?.rows_affected() == 1;
    let queue = is_assigned.then(|| HotQueue {
        lane,
        account: account.clone(),
        number,
    });
    Ok(queue.map_or(Assigned::NoneSpare, Assigned::Queue))
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
        "DELETE FROM hot_queues WHERE number = $1 AND state IN ('new', 'closing')",
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

/// Every queue that is an account's, with what its name begins with.
pub(super) async fn all(connection: &mut PgConnection) -> sqlx::Result<Vec<(String, Listed)>> {
    let rows = sqlx::query!(
        r#"SELECT prefix, number, lane, account_id AS "account_id!", state, EXISTS (
            SELECT FROM holds WHERE holds.account_id = hot_queues.account_id
                AND kind = 'account' AND target = hot_queues.account_id AND holds.state = 'paused'
        ) AS "paused!" FROM hot_queues WHERE account_id IS NOT NULL ORDER BY number"#
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

/// Those of one prefix.
pub(super) async fn of(connection: &mut PgConnection, prefix: &str) -> sqlx::Result<Vec<Listed>> {
    let mut all = all(connection).await?;
    all.retain(|(other, _)| other == prefix);
    Ok(all.into_iter().map(|(_, listed)| listed).collect())
}

/// How many queues there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Numbers {
    /// Accounts' own, of both lanes.
    pub taken: i64,
    /// Spare ones of one lane, and those about to be such.
    pub spare: i64,
}

/// How many queues there are of a prefix, and spare ones of a lane. One that has been new for longer
/// than `promising` will hardly become one: whoever declared it may have been killed.
pub(super) async fn count(
    connection: &mut PgConnection,
    prefix: &str,
    lane: Lane,
    promising: Duration,
) -> sqlx::Result<Numbers> {
    let numbers = sqlx::query!(
        r#"SELECT count(account_id) AS "taken!",
            count(*) FILTER (WHERE lane = $2 AND (state = 'spare' OR state = 'new'
                AND changed_at > clock_timestamp() - make_interval(secs => $3))) AS "spare!"
        FROM hot_queues WHERE prefix = $1"#,
        prefix,
        lane.as_str(),
        promising.as_secs_f64(),
    );
    let numbers = numbers.fetch_one(connection).await?;
    Ok(Numbers {
        taken: numbers.taken,
        spare: numbers.spare,
    })
}

/// Takes numbers for new queues.
pub(super) async fn add(
    connection: &mut PgConnection,
    prefix: &str,
    lane: Lane,
    count: i64,
) -> sqlx::Result<Vec<i64>> {
    let numbers = sqlx::query_scalar!(
        "INSERT INTO hot_queues (prefix, lane) SELECT $1, $2 FROM generate_series(1::bigint, $3)
        RETURNING number",
        prefix,
        lane.as_str(),
        count,
    );
    numbers.fetch_all(connection).await
}

/// New queues are spare ones from now on, unless whoever made them comes late: those that have been
/// new for longer than `promising` may be gone already.
pub(super) async fn ripen(
    connection: &mut PgConnection,
    numbers: &[i64],
    promising: Duration,
) -> sqlx::Result<()> {
    let ripening = sqlx::query!(
        "UPDATE hot_queues SET state = 'spare', version = version + 1, changed_at = clock_timestamp()
        WHERE number = ANY($1) AND state = 'new'
            AND changed_at > clock_timestamp() - make_interval(secs => $2)",
        numbers,
        promising.as_secs_f64(),
    );
    ripening.execute(connection).await.map(drop)
}

/// Spare queues of a lane beyond so many are no longer spare: like those that never became such they
/// are deleted after a while. One that has been spare for less than `since` may just have been made for
/// somebody.
pub(super) async fn retire(
    connection: &mut PgConnection,
    prefix: &str,
    lane: Lane,
    beyond: i64,
    since: Duration,
) -> sqlx::Result<()> {
    let retiring = sqlx::query!(
        "UPDATE hot_queues SET state = 'new', version = version + 1, changed_at = clock_timestamp()
        WHERE state = 'spare' AND number IN (SELECT number FROM hot_queues
            WHERE prefix = $1 AND lane = $2 AND state = 'spare'
                AND changed_at < clock_timestamp() - make_interval(secs => $4)
            ORDER BY number OFFSET $3)",
        prefix,
        lane.as_str(),
        beyond,
        since.as_secs_f64(),
    );
    retiring.execute(connection).await.map(drop)
}

/// New queues of a lane that have not become spare ones for so long: whoever was at it has not come
/// back. Nothing was ever sent there.
pub(super) async fn abandoned(
    connection: &mut PgConnection,
    prefix: &str,
    lane: Lane,
    after: Duration,
) -> sqlx::Result<Vec<i64>> {
    let numbers = sqlx::query_scalar!(
        "SELECT number FROM hot_queues WHERE prefix = $1 AND lane = $2 AND state = 'new'
            AND changed_at < clock_timestamp() - make_interval(secs => $3)",
        prefix,
        lane.as_str(),
        after.as_secs_f64(),
    );
    numbers.fetch_all(connection).await
}
