//! Accounts in a CSV file: the columns are named like the options.

use sqlx::PgConnection;

use crate::accounts::tables::TableError;
use crate::accounts::tables::accounts::{self, AccountChange, Changed};
use crate::batch::{RowError, TableColumns, TableRow};
use crate::cli::tables::import::Imported;
use crate::cli::tables::values::{budget, quiet_action, reserve, switch, windows, zone};
use crate::domain::AccountId;

/// Accounts to be added or changed.
pub(super) struct Accounts;

impl Imported for Accounts {
    type Row = (AccountId, AccountChange);

    const COLUMNS: TableColumns = TableColumns {
        required: &["account"],
        optional: &[
            "budget",
            "reserve",
            "quiet_hours",
            "quiet_action",
            "time_zone",
            "window",
        ],
    };

    fn read(&self, row: &TableRow<'_>) -> Result<Self::Row, RowError> {
        let account = row.required_parsed("account", AccountId::parse)?;
        let change = AccountChange {
            budget: row.parsed("budget", budget)?,
            reserve: row.parsed("reserve", reserve)?,
            quiet_hours: row.parsed("quiet_hours", switch)?,
            quiet_action: row.parsed("quiet_action", quiet_action)?,
            time_zone: row.parsed("time_zone", zone)?,
            windows: row.parsed("window", windows)?.unwrap_or_default(),
        };
        Ok((account, change))
    }

    fn key((account, _): &Self::Row) -> Option<String> {
        Some(account.to_string())
    }

    async fn write(
        &self,
        connection: &mut PgConnection,
        rows: &[Self::Row],
    ) -> Result<Changed, TableError> {
        accounts::change(connection, rows).await
    }
}
