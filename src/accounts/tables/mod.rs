//! The tables as the commands read and write them: one module and one table each.
//!
//! Whatever writes several rows is called in a transaction of the caller's, so that all of them
//! become true at once or none does.

pub mod accounts;
pub mod caps;
pub mod ceilings;
pub mod holds;
pub mod keys;
pub mod suppressions;

use thiserror::Error;

use crate::domain::AccountId;

/// Why something was not written or read.
#[derive(Debug, Error)]
pub enum TableError {
    /// What belongs to an account needs the account's row.
    #[error("no such account: {0}")]
    NoAccount(AccountId),
    /// An account's quiet hours would make no sense.
    #[error("account {account}: quiet hours: {why}")]
    QuietHours {
        /// The account.
        account: AccountId,
        /// Which value, and what was expected there.
        why: String,
    },
    /// The database.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Milliseconds since the Unix epoch, as the tables' instants are read.
fn instant(ms: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_millisecond(ms).unwrap_or_default()
}
