//! Why the dead queue cannot be worked on.

use std::time::Duration;

use thiserror::Error;

use crate::intake::error::{IntakeError, Verdict};

/// Why the dead queue cannot be read, or not on. What was done before stays done.
#[derive(Debug, Error)]
pub enum DeadError {
    /// There is no connection.
    #[error(transparent)]
    Intake(#[from] IntakeError),
    /// The queue is not there.
    #[error(
        "there is no queue {queue}: no worker has run under this prefix yet; is the setting amqp.prefix right?"
    )]
    NoQueue {
        /// The queue.
        queue: String,
    },
    /// Somebody else reads it, and hides from others what they hold.
    #[error(
        "another `lanekeeper dead` has been reading {queue} for more than {limit:?}; try again when it is done"
    )]
    Busy {
        /// The queue.
        queue: String,
        /// How long was waited.
        limit: Duration,
    },
    /// The broker stopped answering, or refused.
    #[error("reading {queue} failed: {reason}")]
    Broken {
        /// The queue.
        queue: String,
        /// What the broker or the client said.
        reason: String,
    },
}

impl DeadError {
    /// What to do about it.
    #[must_use]
    pub const fn verdict(&self) -> Verdict {
        match self {
            Self::Intake(error) => error.verdict(),
            Self::NoQueue { .. } => Verdict::GiveUp,
            Self::Busy { .. } | Self::Broken { .. } => Verdict::Retry,
        }
    }
}
