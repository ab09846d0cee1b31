//! What can go wrong between this process and the broker, and what follows from it.

use std::time::Duration;

use thiserror::Error;

use super::endpoint::UrlError;
use super::mismatch::Mismatch;
use super::names::PrefixError;

/// What to do after an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It may pass by itself: try again, with growing pauses.
    Retry,
    /// Only a human can mend it: at the first start say so once and exit. A worker that has
    /// already been running keeps trying, because the broker may be put right under it.
    GiveUp,
}

/// Why there is no working connection to the broker. No variant holds the URL or a password.
#[derive(Debug, Clone, Error)]
pub enum IntakeError {
    /// The URL cannot be used.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// The prefix cannot be used.
    #[error(transparent)]
    Prefix(#[from] PrefixError),
    /// Nothing answers, or the handshake failed.
    #[error("cannot connect to the broker at {address}: {reason}")]
    Connect {
        /// Scheme, host, port and virtual host.
        address: String,
        /// What happened.
        reason: String,
    },
    /// The broker lacks what the queues need.
    #[error(
        "the broker at {address} is RabbitMQ {version}, but Lanekeeper needs RabbitMQ 3.10 or newer: \
         its delay queues are quorum queues with a message TTL, which older brokers do not have. \
         Upgrade the broker, or point the URL at a newer one"
    )]
    TooOld {
        /// Scheme, host, port and virtual host.
        address: String,
        /// The version that the broker gave.
        version: String,
    },
    /// A queue or exchange exists with other arguments.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// A declaration, or another step at a queue, failed for another reason.
    #[error("{what} failed: {reason}")]
    Declare {
        /// What was done: `declaring the queue …`.
        what: String,
        /// What the broker or the client said.
        reason: String,
    },
    /// A consumer could not be started, or ended.
    #[error("cannot consume from {queue}: {reason}")]
    Consume {
        /// The queue.
        queue: String,
        /// What the broker or the client said.
        reason: String,
    },
    /// The broker did not answer.
    #[error("{what} took longer than {limit:?}")]
    TimedOut {
        /// What was waited for.
        what: String,
        /// How long.
        limit: Duration,
    },
}

impl IntakeError {
    /// What to do about it.
    #[must_use]
    pub const fn verdict(&self) -> Verdict {
        match self {
            Self::Url(_) | Self::Prefix(_) | Self::TooOld { .. } | Self::Mismatch(_) => {
                Verdict::GiveUp
            }
            Self::Connect { .. }
            | Self::Declare { .. }
            | Self::Consume { .. }
            | Self::TimedOut { .. } => Verdict::Retry,
        }
    }
}
