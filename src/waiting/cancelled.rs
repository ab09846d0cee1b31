//! Rows that wait for an instant, though something that they belong to is cancelled: they go before
//! it, so that a worker ends them while the cancellation stands. Paused rows that are cancelled are
//! found by their groups.
//!
//! Looked for are the rows of holds whose `ending_since` is set; the database sets it for whoever
//! cancels. The hold itself is the only account of what has been done: a releaser that dies leaves
//! the rows that it has not released, and a hold that is lifted leaves them as they were.

use sqlx::{PgConnection, PgPool};

use super::choose::{MAX_BYTES, rows_of};
use super::line::{self, Found, FoundRow, Line};
use super::row::Row;

/// The lines that have such rows.
pub(super) async fn calling(connection: &mut PgConnection) -> Result<Vec<Found>, sqlx::Error> {
    let found = sqlx::query_as!(
        FoundRow,
        r#"
        SELECT account_id AS "account_id!", lane AS "lane!",
            (extract(epoch FROM released_until - now()) * 1000000)::bigint AS ahead_us
        FROM (
            SELECT DISTINCT account_id, lane
            FROM holds CROSS JOIN (VALUES ('transactional'), ('marketing')) AS lanes (lane)
            CROSS JOIN LATERAL (
                SELECT FROM waiting_of(account_id, lane, kind, target, '-infinity', 1) LIMIT 1) AS rows
            WHERE ending_since IS NOT NULL AND state = 'cancelled'
        ) AS lines LEFT JOIN release_pace USING (account_id, lane)
        "#
    );
    let found = found.fetch_all(connection).await?;
    found.into_iter().map(FoundRow::read).collect()
}

/// Rows of the line that belong to something cancelled. With `but_due` those whose instant has come
/// are left out, because they go anyway.
pub(super) async fn choose(
    connection: &mut PgConnection,
    line: &Line,
    but_due: bool,
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
                WHERE row_number = ANY (ARRAY(
                    SELECT jobs.row_number FROM holds CROSS JOIN LATERAL waiting_of(
                        account_id, $2, kind, target,
                        CASE WHEN $3 THEN now() ELSE '-infinity' END, $4) AS jobs
                    WHERE account_id = $1 AND ending_since IS NOT NULL AND state = 'cancelled'
                    LIMIT $4))
                FOR UPDATE SKIP LOCKED
            ) AS chosen
        ) AS summed
        WHERE bytes - octet_length(job) < $5
        "#,
        line.account.as_str(),
        line.lane.as_str(),
        but_due,
        rows_of(limit),
        MAX_BYTES,
    );
    rows.fetch_all(connection).await
}

/// Holds whose rows have all gone are looked after no longer. Not before an hour has passed: workers
/// that asked for holds just before the cancellation may still put a row there.
pub(super) async fn forget_ended(pool: &PgPool) -> Result<(), sqlx::Error> {
    let mut transaction = line::begin(pool).await?;
    let forget = sqlx::query!(
        "
        UPDATE holds SET ending_since = NULL
        WHERE (account_id, kind, target) IN (
            SELECT account_id, kind, target FROM holds
            WHERE ending_since < now() - interval '1 hour' AND NOT EXISTS (
                SELECT FROM (VALUES ('transactional'), ('marketing')) AS lanes (lane)
                CROSS JOIN LATERAL waiting_of(account_id, lane, kind, target, '-infinity', 1))
            FOR UPDATE SKIP LOCKED)
        "
    );
    forget.execute(&mut *transaction).await?;
    transaction.commit().await
}
