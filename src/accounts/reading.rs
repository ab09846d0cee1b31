//! The tables of the directory, read as a whole.

use futures_util::{Stream, TryStreamExt as _};
use sqlx::{Connection as _, PgConnection};
use tokio::task::yield_now;

use super::stored::{AccountRow, CapRow, CeilingRow, Stored};
use crate::settings::UnknownAccount;

/// What the database notifies of each change of the directory.
pub(super) const CHANNEL: &str = "lanekeeper_directory";

/// What is read must be of one moment. Reading it takes longer than a question about jobs may.
pub(super) const BEGIN: &str =
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = '30s'";

/// After so many rows the thread is left to others for a moment: a large directory must not hold up
/// the jobs that it is read for.
const ROWS_AT_A_TIME: usize = 256;

/// The version of the tables: it grows with each change.
pub(super) async fn version(connection: &mut PgConnection) -> sqlx::Result<i64> {
    sqlx::query_scalar!("SELECT version FROM directory")
        .fetch_one(connection)
        .await
}

/// Everything that is stored, and its version.
pub(super) async fn everything(connection: &mut PgConnection) -> sqlx::Result<(Stored, i64)> {
    let mut moment = connection.begin_with(BEGIN).await?;
    let head = sqlx::query!("SELECT version, unknown_accounts FROM directory")
        .fetch_one(&mut *moment)
        .await?;
    let mut stored = Stored {
        unknown: head
            .unknown_accounts
            .as_deref()
            .and_then(UnknownAccount::parse),
        ..Stored::default()
    };
    accounts(&mut moment, &mut stored).await?;
    caps(&mut moment, &mut stored).await?;
    ceilings(&mut moment, &mut stored).await?;
    moment.commit().await?;
    Ok((stored, head.version))
}

async fn accounts(connection: &mut PgConnection, stored: &mut Stored) -> sqlx::Result<()> {
    let rows = sqlx::query_as!(
        AccountRow,
        r#"SELECT account_id, budget_per_second, reserve_percent, quiet_hours, quiet_action,
            time_zone, windows::text AS "windows!"
        FROM accounts"#
    );
    each(rows.fetch(connection), |row| stored.add_account(&row)).await
}

async fn caps(connection: &mut PgConnection, stored: &mut Stored) -> sqlx::Result<()> {
    let rows = sqlx::query_as!(
        CapRow,
        "SELECT account_id, name, channel, category, max_messages, window_seconds
        FROM frequency_caps ORDER BY account_id, name"
    );
    each(rows.fetch(connection), |row| stored.add_cap(row)).await
}

async fn ceilings(connection: &mut PgConnection, stored: &mut Stored) -> sqlx::Result<()> {
    let rows = sqlx::query_as!(
        CeilingRow,
        "SELECT account_id, kind, target, per_second FROM ceilings"
    );
    each(rows.fetch(connection), |row| stored.add_ceiling(row)).await
}

/// Hands on row by row.
pub(super) async fn each<Row>(
    mut rows: impl Stream<Item = sqlx::Result<Row>> + Unpin,
    mut add: impl FnMut(Row),
) -> sqlx::Result<()> {
    let mut count = 0_usize;
    while let Some(row) = rows.try_next().await? {
        add(row);
        count += 1;
        if count.is_multiple_of(ROWS_AT_A_TIME) {
            yield_now().await;
        }
    }
    Ok(())
}
