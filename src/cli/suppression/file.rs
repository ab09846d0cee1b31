//! Opt-outs in a CSV file.

use sqlx::PgConnection;

use super::recipients::Typed;
use crate::accounts::tables::TableError;
use crate::accounts::tables::accounts::Changed;
use crate::accounts::tables::suppressions::{self, OptOut};
use crate::batch::{RowError, TableColumns, TableRow};
use crate::cli::tables::import::Imported;
use crate::cli::tables::values::{id, scope};
use crate::domain::AccountId;

/// From so many new rows on the server is told to look at the table's size.
const MANY: u64 = 1_000;

/// Opt-outs of one account.
pub(super) struct OptOuts {
    pub(super) account: AccountId,
    /// Of rows that name none.
    pub(super) source: Option<String>,
    pub(super) typed: Typed,
}

impl Imported for OptOuts {
    type Row = OptOut;

    const COLUMNS: TableColumns = TableColumns {
        required: &["recipient"],
        optional: &["scope", "source"],
    };

    fn read(&self, row: &TableRow<'_>) -> Result<OptOut, RowError> {
        let scope = row.parsed("scope", scope)?;
        let recipient = row.number("recipient")?.unwrap_or_default();
        let (recipient, scope) = self
            .typed
            .key(recipient, scope)
            .map_err(|error| row.error("recipient", error.to_string()))?;
        let source = row.parsed("source", id)?.or_else(|| self.source.clone());
        Ok(OptOut {
            recipient,
            scope,
            source,
        })
    }

    /// Lists of opt-outs name some people twice, and mean it both times.
    fn key(_: &OptOut) -> Option<String> {
        None
    }

    async fn write(
        &self,
        connection: &mut PgConnection,
        rows: &[OptOut],
    ) -> Result<Changed, TableError> {
        let created = suppressions::add(connection, &self.account, rows).await?;
        Ok(Changed {
            created,
            unchanged: rows.len() as u64 - created,
            ..Changed::default()
        })
    }

    async fn afterwards(
        &self,
        connection: &mut PgConnection,
        added: u64,
    ) -> Result<(), TableError> {
        if added >= MANY {
            suppressions::take_stock(connection).await?;
        }
        Ok(())
    }
}
