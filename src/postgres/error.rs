//! What the database's errors mean.

use std::io;

use sqlx::Error;
use sqlx::error::DatabaseError;

use crate::dispatch::ports::RecordsError;

/// What an error means to the pipeline.
#[must_use]
pub fn records_error(error: &Error) -> RecordsError {
    match error {
        Error::Io(error) if error.kind() == io::ErrorKind::TimedOut => RecordsError::TimedOut,
        Error::Io(_)
        | Error::Tls(_)
        | Error::Configuration(_)
        | Error::PoolTimedOut
        | Error::PoolClosed
        | Error::WorkerCrashed => RecordsError::Unreachable,
        Error::Database(error) => match condition(&**error) {
            Condition::Closed | Condition::Refused(_) => RecordsError::Unreachable,
            Condition::TimedOut => RecordsError::TimedOut,
            Condition::Value => RecordsError::Unfit,
            Condition::Forbidden
            | Condition::ReadOnly
            | Condition::NoTable
            | Condition::Statements
            | Condition::Other => RecordsError::Failed,
        },
        _ => RecordsError::Failed,
    }
}

/// What an error means to whoever runs a command. It shows neither the URL nor what was written.
#[must_use]
pub fn explain(error: &Error) -> String {
    match error {
        Error::Io(error) => explain_connection(error.kind()),
        Error::Tls(_) => NO_TLS.into(),
        Error::Configuration(_) => "a parameter of database.url cannot be used".into(),
        Error::PoolTimedOut => "no connection in time".into(),
        Error::Protocol(_) => "it does not speak as PostgreSQL does".into(),
        Error::Database(error) => explain_answer(&**error),
        _ => "its answer is not what was expected".into(),
    }
}

const NO_TLS: &str = "no TLS connection can be made: look at sslmode in database.url, and at \
    sslrootcert, which names the certificate of an authority that is not a public one";

fn explain_connection(kind: io::ErrorKind) -> String {
    match kind {
        io::ErrorKind::TimedOut => "no answer in time".into(),
        // What rustls says of certificates comes as this.
        io::ErrorKind::InvalidData => NO_TLS.into(),
        io::ErrorKind::NotFound => {
            "there is no such file: the socket, or what sslrootcert, sslcert or sslkey names".into()
        }
        kind => format!("the connection failed: {kind}"),
    }
}

fn explain_answer(error: &dyn DatabaseError) -> String {
    let code = error.code().unwrap_or_default();
    match condition(error) {
        Condition::Refused(why) => why.to_owned(),
        Condition::Closed => "it closes connections: it is starting or stopping".into(),
        Condition::TimedOut => "no answer in time, or a lock that was not to be had".into(),
        Condition::Forbidden => "this user may not do that (SQLSTATE 42501)".into(),
        Condition::ReadOnly => "it takes no writes: is it a standby? (SQLSTATE 25006)".into(),
        Condition::NoTable => "a table or column is missing: run `lanekeeper migrate`".into(),
        Condition::Statements => {
            "prepared statements get lost: a PgBouncer in transaction mode must be \
             1.21 or newer, with max_prepared_statements above 0; or name PostgreSQL itself in \
             database.url"
                .into()
        }
        Condition::Value | Condition::Other => {
            format!("it answers with an error (SQLSTATE {code})")
        }
    }
}

/// What an answer with an error says.
pub(super) enum Condition {
    /// The server lets nobody in, or not us; why.
    Refused(&'static str),
    /// The server ends connections.
    Closed,
    /// A statement or a lock took too long.
    TimedOut,
    /// The user lacks a right.
    Forbidden,
    /// Writes are not taken.
    ReadOnly,
    /// The schema is not what it should be.
    NoTable,
    /// A prepared statement is there twice, or not at all.
    Statements,
    /// A value cannot be kept: out of range, not to be written in the database's encoding, too
    /// long for an index. Constraints are no such case: a missing partition breaks one too.
    Value,
    /// Anything else.
    Other,
}

/// SQLSTATE codes, from the appendix "PostgreSQL Error Codes" of the server's manual.
pub(super) fn condition(error: &dyn DatabaseError) -> Condition {
    match error.code().as_deref().unwrap_or_default() {
        "28P01" | "28000" => {
            Condition::Refused("user or password is wrong, or the server does not let this user in")
        }
        "3D000" => Condition::Refused("the database does not exist; create it first"),
        "53300" => Condition::Refused(
            "it has no connection left: lower database.connections, or raise its max_connections",
        ),
        "57P01" | "57P02" | "57P03" => Condition::Closed,
        code if code.starts_with("08") => Condition::Closed,
        "57014" | "55P03" => Condition::TimedOut,
        "42501" => Condition::Forbidden,
        "25006" => Condition::ReadOnly,
        "42P01" | "42703" | "3F000" => Condition::NoTable,
        "42P05" | "26000" => Condition::Statements,
        "54000" => Condition::Value,
        code if code.starts_with("22") => Condition::Value,
        _ => Condition::Other,
    }
}
