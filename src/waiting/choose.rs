//! Choosing rows of a line to release. So many at most, and so many bytes (one row at least), so that
//! a worker's memory is bounded whatever the jobs' sizes are.

use sqlx::PgConnection;

use super::line::Line;
use super::row::Row;

/// The most rows in one go.
pub(super) const MAX_ROWS: usize = 1_000;

/// No further row is chosen when those before it have so many bytes.
pub(super) const MAX_BYTES: i64 = 2 << 20;

/// Rows whose instant has come, the oldest first.
pub(super) async fn due(
    connection: &mut PgConnection,
    line: &Line,
    limit: usize,
) -> Result<Vec<Row>, sqlx::Error> {
    let rows = sqlx::query_as!(
        Row,
        r#"
        SELECT row_number AS "number!", id AS "id!", job AS "job!", attempts AS "attempts!",
            sheds AS "sheds!", enqueued_ms
        FROM (
            SELECT *, sum(octet_length(job)) OVER (ORDER BY due_at, row_number) AS bytes
            FROM (
                SELECT * FROM waiting
                WHERE account_id = $1 AND lane = $2 AND due_at <= now()
                ORDER BY due_at, row_number LIMIT $3
                FOR UPDATE SKIP LOCKED
            ) AS chosen
        ) AS summed
        WHERE bytes - octet_length(job) < $4
        "#,
        line.account.as_str(),
        line.lane.as_str(),
        rows_of(limit),
        MAX_BYTES,
    );
    rows.fetch_all(connection).await
}

/// Rows of groups that wait no longer, the oldest of each group first.
pub(super) async fn resumed(
    connection: &mut PgConnection,
    line: &Line,
    groups: &[String],
    limit: usize,
) -> Result<Vec<Row>, sqlx::Error> {
    let rows = sqlx::query_as!(
        Row,
        r#"
        SELECT row_number AS "number!", id AS "id!", job AS "job!", attempts AS "attempts!",
            sheds AS "sheds!", enqueued_ms
        FROM (
            SELECT *, sum(octet_length(job)) OVER (ORDER BY place, row_number) AS bytes
            FROM (
                SELECT jobs.*, place
                FROM unnest($3::text[]) WITH ORDINALITY AS released (key, place)
                CROSS JOIN LATERAL (
                    SELECT * FROM waiting
                    WHERE account_id = $1 AND lane = $2 AND due_at IS NULL
                        AND waiting_group(campaign_id, journey_id, batch_id) = released.key::uuid
                    ORDER BY row_number LIMIT $4
                    FOR UPDATE SKIP LOCKED
                ) AS jobs
                LIMIT $4
            ) AS chosen
        ) AS summed
        WHERE bytes - octet_length(job) < $5
        "#,
        line.account.as_str(),
        line.lane.as_str(),
        groups,
        rows_of(limit),
        MAX_BYTES,
    );
    rows.fetch_all(connection).await
}

/// Whether a turn takes no more rows than these.
pub(super) fn fills_a_turn(rows: &[Row]) -> bool {
    let bytes: usize = rows.iter().map(|row| row.job.len()).sum();
    rows.len() >= MAX_ROWS || i64::try_from(bytes).is_ok_and(|bytes| bytes >= MAX_BYTES)
}

/// A limit as the database takes it.
pub(super) fn rows_of(limit: usize) -> i64 {
    i64::try_from(limit.min(MAX_ROWS)).unwrap_or(i64::MAX)
}
