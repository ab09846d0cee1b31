//! How far ahead of its ceiling a line may be released, over all replicas together.
//!
//! The generic cell rate algorithm: `released_until` is when the ceiling will have let through what
//! has been released. Whoever holds its row holds the line.

use std::time::Duration;

use sqlx::{PgConnection, PgPool};

use super::line::{Line, STATEMENT_LIMIT, micros};
use super::turns::span;

/// What is released needs at most this long at the ceiling's rate.
const AHEAD: Duration = Duration::from_secs(2);

/// How much longer than a publish may take the server lets a releaser that does nothing hold a line:
/// short enough for a machine that has vanished.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many jobs may be released now at a rate of `per_second`, when those released before still
/// need `ahead`.
pub(super) fn room(ahead: Duration, per_second: u32) -> usize {
    let free = AHEAD.saturating_sub(ahead).as_micros();
    let jobs = free * u128::from(per_second) / Duration::from_secs(1).as_micros();
    usize::try_from(jobs).unwrap_or(usize::MAX)
}

/// Makes sure that there is an account of the line's pace.
pub(super) async fn open(pool: &PgPool, line: &Line) -> Result<(), sqlx::Error> {
    let open = sqlx::query!(
        "INSERT INTO release_pace (account_id, lane, released_until) VALUES ($1, $2, now())
         ON CONFLICT (account_id, lane) DO NOTHING",
        line.account.as_str(),
        line.lane.as_str(),
    );
    open.execute(pool).await?;
    Ok(())
}

/// Holds the line to the transaction's end, within which a publish may take `publish_limit`. Gives
/// how far ahead it is; `None` when another worker holds it.
pub(super) async fn hold(
    connection: &mut PgConnection,
    line: &Line,
    publish_limit: Duration,
) -> Result<Option<Duration>, sqlx::Error> {
    let patience = (publish_limit + PATIENCE).as_millis();
    let held = sqlx::query!(
        r#"
        SELECT (extract(epoch FROM released_until - clock_timestamp()) * 1000000)::bigint AS "ahead_us!",
            set_config('idle_in_transaction_session_timeout', $3, true) AS patience,
            set_config('statement_timeout', $4, true) AS statement_limit
        FROM release_pace WHERE account_id = $1 AND lane = $2
        FOR UPDATE SKIP LOCKED
        "#,
        line.account.as_str(),
        line.lane.as_str(),
        format!("{patience}ms"),
        STATEMENT_LIMIT,
    );
    let held = held.fetch_optional(connection).await?;
    Ok(held.map(|row| micros(row.ahead_us)))
}

/// Writes down that these rows have been released: they go, and the line is further ahead. A publish
/// that took long has used up no room: what it released is ahead from now on.
pub(super) async fn released(
    connection: &mut PgConnection,
    line: &Line,
    per_second: u32,
    rows: &[i64],
) -> Result<(), sqlx::Error> {
    let span = i64::try_from(span(rows.len(), per_second)).unwrap_or(i64::MAX);
    let released = sqlx::query!(
        "WITH gone AS (DELETE FROM waiting WHERE row_number = ANY($1))
         UPDATE release_pace
         SET released_until = greatest(released_until, clock_timestamp()) + $4::bigint * interval '1 us'
         WHERE account_id = $2 AND lane = $3",
        rows,
        line.account.as_str(),
        line.lane.as_str(),
        span,
    );
    released.execute(connection).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_seconds_of_the_ceiling_may_be_ahead() {
        let of = |millis, per_second| room(Duration::from_millis(millis), per_second);
        assert_eq!((of(0, 80), of(500, 80), of(2_000, 80)), (160, 120, 0));
        assert_eq!(
            (of(0, 1), of(1, 1), of(1_000, 1), of(1_001, 1)),
            (2, 1, 1, 0)
        );
        assert_eq!((of(0, 0), of(60_000, 80)), (0, 0));
        assert_eq!(of(0, 1_000_000_000), 2_000_000_000);
    }

    #[test]
    fn what_is_released_never_needs_longer_than_that() {
        for per_second in [1, 3, 7, 80, 999, 1_000_000] {
            for ahead in [0, 1, 333_333, 1_000_000, 1_999_999] {
                let jobs = room(Duration::from_micros(ahead), per_second);
                assert!(ahead + span(jobs, per_second) <= 2_000_001);
            }
        }
    }
}
