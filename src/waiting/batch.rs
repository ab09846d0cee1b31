//! The jobs of a batch that wait.

use sqlx::PgConnection;

/// How many jobs of a batch wait for each reason.
///
/// # Errors
/// When the database does not answer.
pub async fn batch_waiting(
    connection: &mut PgConnection,
    account: &str,
    batch: &str,
) -> Result<Vec<(String, u64)>, sqlx::Error> {
    let waiting = sqlx::query!(
        r#"SELECT reason, count(*) AS "jobs!" FROM waiting
         WHERE account_id COLLATE "C" = $1 AND batch_id COLLATE "C" = $2
            AND octet_length(batch_id) <= 128
         GROUP BY reason"#,
        account,
        batch,
    );
    let waiting = waiting.fetch_all(connection).await?.into_iter();
    let waiting = waiting.map(|row| (row.reason, u64::try_from(row.jobs).unwrap_or(0)));
    Ok(waiting.collect())
}
