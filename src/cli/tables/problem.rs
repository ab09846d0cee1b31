//! Why a command was not carried out, and the exit code that says so.

use std::io;

use thiserror::Error;

use crate::accounts::keys::NoRandomness;
use crate::accounts::tables::TableError;
use crate::batch::{FileError, TableError as TableFileError};
use crate::cli::stop::Signal;
use crate::postgres::explain;

/// Why a command was not carried out.
#[derive(Debug, Error)]
pub(in crate::cli) enum Problem {
    /// No database is set.
    #[error(
        "there is no database: set database.url, as in LANEKEEPER__DATABASE__URL=\
         postgres://user:password@host:5432/lanekeeper, and run `lanekeeper migrate`"
    )]
    NoDatabase,
    /// The database, or what it keeps.
    #[error("{}", describe(.0))]
    Table(#[from] TableError),
    /// What was asked for makes no sense here.
    #[error("{0}")]
    Usage(String),
    /// What was asked about is not there.
    #[error("{0}")]
    NotThere(String),
    /// A file of rows cannot be used.
    #[error(transparent)]
    File(#[from] TableFileError),
    /// A signal came.
    #[error("stopped by {}; nothing was written", .0.name())]
    Stopped(Signal),
    /// No key can be made.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
    /// The result cannot be written.
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
}

impl Problem {
    pub(in crate::cli) const fn exit_code(&self) -> u8 {
        match self {
            Self::Table(TableError::QuietHours { .. })
            | Self::NoDatabase
            | Self::Usage(_)
            | Self::File(_) => 2,
            Self::Table(_) | Self::NoRandomness(_) | Self::Output(_) => 1,
            Self::NotThere(_) => 3,
            Self::Stopped(signal) => signal.exit_code(),
        }
    }
}

impl From<sqlx::Error> for Problem {
    fn from(error: sqlx::Error) -> Self {
        Self::Table(error.into())
    }
}

impl From<FileError> for Problem {
    fn from(error: FileError) -> Self {
        Self::File(error.into())
    }
}

fn describe(error: &TableError) -> String {
    match error {
        TableError::NoAccount(account) => {
            format!("no such account: {account}; add it by `lanekeeper account set {account}`")
        }
        TableError::QuietHours { why, .. } if why.starts_with("time_zone: missing") => {
            format!("{error}; give one by --time-zone, for recipients whose own is not known")
        }
        TableError::QuietHours { .. } => error.to_string(),
        TableError::Database(error) => {
            let why = explain(error);
            format!("the database: {why}; `lanekeeper check` says what is reachable")
        }
    }
}
