//! When jobs that wait become worthless. Their rows do not say it, but their messages do.

use jiff::Timestamp;
use sqlx::PgConnection;

use crate::domain::{Decoded, Region};
use crate::intake::decode::decode;

/// The `expires_at` of the jobs of that id that wait, or of those of the account alone, in the order
/// in which [`crate::ledger::waiting`] gives them.
pub(super) async fn of_waiting(
    connection: &mut PgConnection,
    id: &str,
    account: Option<&str>,
    default_region: Option<Region>,
) -> Result<Vec<Option<Timestamp>>, sqlx::Error> {
    let messages = sqlx::query_scalar!(
        "SELECT job FROM waiting WHERE id = $1 AND ($2::text IS NULL OR account_id = $2)
         ORDER BY account_id, row_number",
        id,
        account,
    );
    let messages = messages.fetch_all(connection).await?.into_iter();
    let decoded = messages.map(|message| decode(message.into(), default_region).decoded);
    let expiry = decoded.map(|decoded| match decoded {
        Decoded::Job(job) => job.expires_at,
        Decoded::Invalid { .. } | Decoded::Undecodable { .. } => None,
    });
    Ok(expiry.collect())
}
