//! What the ledger was never told.

use jiff::Timestamp;
use sqlx::{PgConnection, PgPool};

use crate::dispatch::ports::Gap;
use crate::domain::AccountId;

/// Notes gaps. Doing it twice makes two rows of one, which changes no answer.
///
/// # Errors
/// When the database has not confirmed it.
pub async fn note_gaps(pool: &PgPool, gaps: &[Gap]) -> Result<(), sqlx::Error> {
    let accounts = gaps.iter().map(|gap| gap.account.as_ref());
    let accounts: Vec<_> = accounts.map(|id| id.map(AccountId::as_str)).collect();
    let began = gaps.iter().map(|gap| gap.began_at.as_millisecond());
    // Of a millisecond that has begun it counts the whole.
    let ended = gaps
        .iter()
        .map(|gap| gap.ended_at.as_millisecond().saturating_add(1));
    let jobs = gaps
        .iter()
        .map(|gap| i64::try_from(gap.jobs).unwrap_or(i64::MAX));
    let noting = sqlx::query!(
        "INSERT INTO ledger_gaps (account_id, began_at, ended_at, jobs)
         SELECT account_id, timestamptz 'epoch' + began * interval '1 ms',
             timestamptz 'epoch' + ended * interval '1 ms', jobs
         FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[])
             AS gap (account_id, began, ended, jobs)",
        &accounts as &[Option<&str>],
        &began.collect::<Vec<_>>(),
        &ended.collect::<Vec<_>>(),
        &jobs.collect::<Vec<_>>(),
    );
    noting.execute(pool).await.map(drop)
}

/// Whether jobs of an account may have ended at `since` or later of which the ledger was not told.
///
/// # Errors
/// When the database does not answer.
pub async fn has_gap(
    connection: &mut PgConnection,
    account: &str,
    since: Timestamp,
) -> Result<bool, sqlx::Error> {
    let found = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM ledger_gaps
            WHERE ended_at >= timestamptz 'epoch' + $2::bigint * interval '1 ms'
                AND (account_id = $1 OR account_id IS NULL)) AS "has!""#,
        account,
        since.as_millisecond(),
    );
    found.fetch_one(connection).await
}

/// Forgets gaps that ended before an instant.
pub(super) async fn forget_gaps(pool: &PgPool, before: Timestamp) -> Result<(), sqlx::Error> {
    let forgetting = sqlx::query!(
        "DELETE FROM ledger_gaps
         WHERE ended_at < timestamptz 'epoch' + $1::bigint * interval '1 ms'",
        before.as_millisecond(),
    );
    forgetting.execute(pool).await.map(drop)
}
