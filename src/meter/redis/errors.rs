//! What each failure of Redis means for a decision.

use deadpool_redis::PoolError;
use deadpool_redis::redis::{ErrorKind, RedisError, ServerError};

use crate::meter::StoreError;

/// The error codes of a server that takes no writes: a replica, a full memory, a failing disk, too
/// few replicas, a replica without its primary.
const READ_ONLY: [&str; 5] = ["READONLY", "OOM", "MISCONF", "NOREPLICAS", "MASTERDOWN"];
/// The error codes of a server that does not let us in, or not do this.
const DENIED: [&str; 3] = ["NOAUTH", "WRONGPASS", "NOPERM"];

/// Classifies what a server answered.
pub(super) fn of_answer(error: &ServerError) -> StoreError {
    of_code(error.code(), error.details().unwrap_or_default())
}

/// Classifies a failure to get an answer.
pub(super) fn of_failure(error: &RedisError) -> StoreError {
    match error.kind() {
        ErrorKind::Io if error.is_timeout() => StoreError::TimedOut,
        ErrorKind::Io => StoreError::Unreachable,
        ErrorKind::AuthenticationFailed => StoreError::Denied,
        ErrorKind::Server(_) | ErrorKind::Extension => of_code(
            error.code().unwrap_or_default(),
            error.detail().unwrap_or_default(),
        ),
        _ => StoreError::Failed,
    }
}

/// Classifies a failure to get a connection.
pub(super) fn of_pool(error: &PoolError) -> StoreError {
    match error {
        PoolError::Timeout(_) => StoreError::TimedOut,
        PoolError::Backend(error) => of_failure(error),
        PoolError::Closed | PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => {
            StoreError::Failed
        }
    }
}

/// An error raised inside a script keeps its code from Redis 7 on; before, and for missing rights,
/// the cause stands in the text.
fn of_code(code: &str, detail: &str) -> StoreError {
    let is = |known: &&str| code == *known || detail.contains(*known);
    if READ_ONLY.iter().any(is) {
        StoreError::ReadOnly
    } else if DENIED.iter().any(is) || detail.contains("can't run this command") {
        StoreError::Denied
    } else {
        StoreError::Failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_mean_what_they_say() {
        for (code, detail, expected) in [
            (
                "READONLY",
                "You can't write against a read only replica.",
                StoreError::ReadOnly,
            ),
            ("OOM", "command not allowed", StoreError::ReadOnly),
            ("MISCONF", "", StoreError::ReadOnly),
            ("NOREPLICAS", "", StoreError::ReadOnly),
            (
                "ERR",
                "Error running script: -READONLY You can't write",
                StoreError::ReadOnly,
            ),
            ("NOAUTH", "Authentication required.", StoreError::Denied),
            ("WRONGPASS", "", StoreError::Denied),
            ("NOPERM", "", StoreError::Denied),
            (
                "ERR",
                "The user executing the script can't run this command or subcommand",
                StoreError::Denied,
            ),
            (
                "LOADING",
                "Redis is loading the dataset in memory",
                StoreError::Failed,
            ),
            ("BUSY", "", StoreError::Failed),
            ("MOVED", "1 host:1", StoreError::Failed),
            ("ERR", "unknown", StoreError::Failed),
        ] {
            assert_eq!(of_code(code, detail), expected, "{code} {detail}");
        }
    }

    #[test]
    fn time_outs_and_lost_connections_differ() {
        use std::io::{
            Error,
            ErrorKind::{ConnectionRefused, ConnectionReset, TimedOut},
        };
        let of = |kind| of_failure(&RedisError::from(Error::from(kind)));
        assert_eq!(of(TimedOut), StoreError::TimedOut);
        assert_eq!(of(ConnectionRefused), StoreError::Unreachable);
        assert_eq!(of(ConnectionReset), StoreError::Unreachable);
    }
}
