//! The ledger's partitions: one per day in UTC, made ahead, dropped when they are old.
//!
//! Rows of a day without a partition go to the default one, `ledger_other`. A partition can only be
//! made for a day that has no rows there yet; such a day stays where it is, and its rows are deleted
//! when they are old.

use jiff::ToSpan as _;
use jiff::civil::Date;
use sqlx::postgres::PgDatabaseError;
use sqlx::{Executor as _, PgConnection, PgPool, Postgres, Transaction};

/// Days ahead, so that a database that cannot be asked for a weekend does no harm.
const DAYS_AHEAD: i64 = 3;

/// What every change of partitions holds, so that only one worker is at it.
const LOCK: i64 = 0x1ed_9e75;

/// Making or dropping a partition locks the whole ledger for a moment, and whoever wants to write
/// queues behind it, also while it waits for the lock itself: for so long at most.
const LIMITS: &str = "SET LOCAL lock_timeout = '200ms'; SET LOCAL statement_timeout = '2s'";

/// A new partition makes the server read the whole default one while everybody waits: so much of it,
/// in bytes, is read in a moment.
const MOST_READ: i64 = 64 << 20;

/// Old rows of the default partition that are deleted at once, and how often in one go.
const SWEEP: i64 = 5_000;
const SWEEPS: usize = 200;

/// What was done, and what could not be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Maintained {
    /// Days that have a partition now.
    pub made: Vec<Date>,
    /// Days whose partition was dropped.
    pub dropped: Vec<Date>,
    /// Rows that were deleted from the default partition.
    pub swept: u64,
    /// The first thing that stood in the way.
    pub obstacle: Option<Obstacle>,
}

/// Why something was left for later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// Another worker is at it.
    Busy,
    /// Somebody uses the ledger for so long that writers would have had to wait.
    InUse,
    /// The default partition has become so large that a new one would take more than a moment.
    Crowded,
    /// The database user may not make or drop tables.
    Forbidden,
}

impl Maintained {
    fn note(&mut self, obstacle: Obstacle) {
        self.obstacle.get_or_insert(obstacle);
    }
}

/// Makes the partitions of today and the days that follow, and drops those of days before
/// `keep_from`.
///
/// # Errors
/// When the database does not answer, or with an error that is no [`Obstacle`].
pub(super) async fn maintain(
    pool: &PgPool,
    today: Date,
    keep_from: Option<Date>,
) -> Result<Maintained, sqlx::Error> {
    let mut maintained = Maintained::default();
    let known = days(pool).await?;
    // Old days first: where there is no room for new ones, they make some. What goes wrong with
    // the one keeps nobody from the other.
    let dropped = match keep_from {
        Some(keep_from) => drop_old(pool, &known, keep_from, &mut maintained).await,
        None => Ok(()),
    };
    let made = make_ahead(pool, &known, today, &mut maintained).await;
    dropped.and(made).map(|()| maintained)
}

async fn make_ahead(
    pool: &PgPool,
    known: &[Date],
    today: Date,
    maintained: &mut Maintained,
) -> Result<(), sqlx::Error> {
    for ahead in 0..=DAYS_AHEAD {
        let day = today.saturating_add(ahead.days());
        if !known.contains(&day) {
            match make(pool, day).await? {
                Ok(true) => maintained.made.push(day),
                Ok(false) => {}
                Err(obstacle) => maintained.note(obstacle),
            }
        }
    }
    Ok(())
}

async fn drop_old(
    pool: &PgPool,
    known: &[Date],
    keep_from: Date,
    maintained: &mut Maintained,
) -> Result<(), sqlx::Error> {
    for day in known.iter().copied().filter(|day| *day < keep_from) {
        match drop(pool, day).await? {
            Ok(()) => maintained.dropped.push(day),
            Err(obstacle) => maintained.note(obstacle),
        }
    }
    match sweep(pool, keep_from).await? {
        Ok(rows) => maintained.swept = rows,
        Err(obstacle) => maintained.note(obstacle),
    }
    Ok(())
}

/// The days that have a partition.
async fn days(pool: &PgPool) -> Result<Vec<Date>, sqlx::Error> {
    let names = sqlx::query_scalar!(
        r#"SELECT relname::text AS "name!" FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
           WHERE inhparent = 'ledger'::regclass ORDER BY 1"#
    );
    let names = names.fetch_all(pool).await?;
    Ok(names.iter().filter_map(|name| day_of(name)).collect())
}

fn name_of(day: Date) -> String {
    format!("ledger_{}", day.strftime("%Y_%m_%d"))
}

fn day_of(name: &str) -> Option<Date> {
    Date::strptime("ledger_%Y_%m_%d", name).ok()
}

/// Makes a day's partition; `false`: the day has rows in the default one and stays there.
async fn make(pool: &PgPool, day: Date) -> Result<Result<bool, Obstacle>, sqlx::Error> {
    let Some(mut transaction) = begin(pool).await? else {
        return Ok(Err(Obstacle::Busy));
    };
    let made = async {
        if is_crowded(&mut transaction).await? {
            return Ok(Err(Obstacle::Crowded));
        }
        if is_taken(&mut transaction, day).await? {
            return Ok(Ok(false));
        }
        let (name, next) = (name_of(day), day.saturating_add(1.day()));
        // Attached rather than made in its place: that locks the ledger against nothing but changes
        // of its partitions, and of the partitions only the default one.
        let statements = format!(
            "CREATE TABLE {name} (LIKE ledger INCLUDING ALL);
             ALTER TABLE ledger ATTACH PARTITION {name} FOR VALUES FROM ('{day}') TO ('{next}')"
        );
        transaction.execute(statements.as_str()).await?;
        Ok(Ok(true))
    };
    let made = obstacle_or(made.await)?.and_then(|made| made);
    finish(transaction, made).await
}

async fn is_crowded(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let crowded = sqlx::query_scalar!(
        r#"SELECT pg_relation_size('ledger_other') > $1 AS "is!""#,
        MOST_READ,
    );
    crowded.fetch_one(connection).await
}

/// Whether the default partition has rows of that day, or another worker has made its partition.
async fn is_taken(connection: &mut PgConnection, day: Date) -> Result<bool, sqlx::Error> {
    let taken = sqlx::query_scalar!(
        r#"SELECT to_regclass($1) IS NOT NULL
            OR EXISTS (SELECT FROM ledger_other WHERE day = $2::text::date) AS "is!""#,
        name_of(day),
        day.to_string(),
    );
    taken.fetch_one(connection).await
}

async fn drop(pool: &PgPool, day: Date) -> Result<Result<(), Obstacle>, sqlx::Error> {
    let Some(mut transaction) = begin(pool).await? else {
        return Ok(Err(Obstacle::Busy));
    };
    let statement = format!("DROP TABLE IF EXISTS {}", name_of(day));
    let dropped = transaction.execute(statement.as_str()).await.map(|_| ());
    let dropped = obstacle_or(dropped)?;
    finish(transaction, dropped).await
}

/// Deletes old rows of the default partition, some at a time, which keeps nobody waiting.
async fn sweep(pool: &PgPool, keep_from: Date) -> Result<Result<u64, Obstacle>, sqlx::Error> {
    let mut swept = 0;
    for _ in 0..SWEEPS {
        let sweep = sqlx::query!(
            "DELETE FROM ledger_other WHERE ctid = ANY (ARRAY(
                SELECT ctid FROM ledger_other WHERE day < $1::text::date LIMIT $2
                FOR UPDATE SKIP LOCKED))",
            keep_from.to_string(),
            SWEEP,
        );
        let rows = match obstacle_or(sweep.execute(pool).await)? {
            Ok(done) => done.rows_affected(),
            Err(obstacle) => return Ok(Err(obstacle)),
        };
        swept += rows;
        if rows == 0 {
            break;
        }
    }
    Ok(Ok(swept))
}

/// Begins a change, unless another worker is at one.
async fn begin(pool: &PgPool) -> Result<Option<Transaction<'_, Postgres>>, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    let free = sqlx::query_scalar!(r#"SELECT pg_try_advisory_xact_lock($1) AS "free!""#, LOCK);
    if !free.fetch_one(&mut *transaction).await? {
        return Ok(None);
    }
    transaction.execute(LIMITS).await?;
    Ok(Some(transaction))
}

async fn finish<T>(
    transaction: Transaction<'_, Postgres>,
    result: Result<T, Obstacle>,
) -> Result<Result<T, Obstacle>, sqlx::Error> {
    match &result {
        Ok(_) => transaction.commit().await?,
        Err(_) => transaction.rollback().await?,
    }
    Ok(result)
}

/// Tells what will pass, or needs a person, from what is wrong.
fn obstacle_or<T>(result: Result<T, sqlx::Error>) -> Result<Result<T, Obstacle>, sqlx::Error> {
    let error = match result {
        Ok(value) => return Ok(Ok(value)),
        Err(error) => error,
    };
    let code = error.as_database_error();
    let code = code.and_then(|error| error.try_downcast_ref::<PgDatabaseError>());
    match code.map(PgDatabaseError::code) {
        // A lock or the statement took too long, two workers were deadlocked, or a row of that day
        // came to the default partition just now.
        Some("55P03" | "57014" | "40P01" | "23514") => Ok(Err(Obstacle::InUse)),
        Some("42501") => Ok(Err(Obstacle::Forbidden)),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_known_by_its_name_and_others_are_left_alone() {
        let day = jiff::civil::date(2026, 3, 9);
        assert_eq!(name_of(day), "ledger_2026_03_09");
        assert_eq!(day_of("ledger_2026_03_09"), Some(day));
        for other in [
            "ledger_other",
            "ledger_2026_13_01",
            "ledger_2026_03_09_old",
            "x",
        ] {
            assert_eq!(day_of(other), None, "{other}");
        }
    }
}
