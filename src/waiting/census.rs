//! How many jobs wait.

use sqlx::PgPool;

use crate::domain::Lane;

/// Pages that are read at most, of 8 KiB each: a table of up to 8 MiB is counted exactly, and a
/// larger one estimated from a sample of that size.
const SAMPLE: f64 = 1_024.0;

/// The rows of each lane, in the lanes' order.
pub(super) async fn count(pool: &PgPool) -> Result<[u64; 2], sqlx::Error> {
    let pages = sqlx::query_scalar!(
        r#"SELECT pg_relation_size('waiting')::float8 / current_setting('block_size')::float8 AS "pages!""#
    );
    let pages = pages.fetch_one(pool).await?;
    let percent = (100.0 * SAMPLE / pages.max(1.0)).min(100.0);
    let counted = sqlx::query!(
        r#"
        SELECT lane, (count(*) * 100 / $1::float8)::bigint AS "jobs!"
        FROM waiting TABLESAMPLE SYSTEM ($1::float8) GROUP BY lane
        "#,
        percent,
    );
    let mut rows = [0; 2];
    for counted in counted.fetch_all(pool).await? {
        if let Some(lane) = Lane::parse(&counted.lane) {
            rows[lane.index()] = u64::try_from(counted.jobs).unwrap_or(0);
        }
    }
    Ok(rows)
}
