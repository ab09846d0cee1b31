//! What can go wrong between a publisher and the broker, and what to do about it.

use std::time::Duration;

use thiserror::Error;

use crate::wire::UrlError;
use crate::{JobError, PrefixError};

/// What to do after an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It may pass by itself: publish the same job with the same id again, after a pause that
    /// grows. Should the first copy have arrived after all, the id keeps it from being sent twice.
    RetrySameId,
    /// Publishing again changes nothing: something has to be put right first.
    DoNotRetry,
}

/// Why there is no connection to the broker. Holds neither user name nor password.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConnectError {
    /// The URL cannot be used.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// The prefix cannot be used.
    #[error(transparent)]
    Prefix(#[from] PrefixError),
    /// Nobody answers, the connection broke at once, or the broker takes none for now: it starts,
    /// stops, or has as many as it may.
    #[error("cannot connect to the broker at {address}: {reason}")]
    Unreachable {
        /// Scheme, host, port and virtual host.
        address: String,
        /// What happened.
        reason: String,
    },
    /// The broker does not let this user in, or not into this virtual host, or has no such virtual
    /// host.
    #[error("the broker at {address} refuses the log-in: {reason}")]
    Denied {
        /// Scheme, host, port and virtual host.
        address: String,
        /// What the broker said.
        reason: String,
    },
    /// No connection in time.
    #[error("connecting to the broker at {address} took longer than {limit:?}")]
    TimedOut {
        /// Scheme, host, port and virtual host.
        address: String,
        /// How long it was waited for.
        limit: Duration,
    },
}

impl ConnectError {
    /// What to do about it.
    #[must_use]
    pub const fn verdict(&self) -> Verdict {
        match self {
            Self::Url(_) | Self::Prefix(_) | Self::Denied { .. } => Verdict::DoNotRetry,
            Self::Unreachable { .. } | Self::TimedOut { .. } => Verdict::RetrySameId,
        }
    }
}

/// Why a job is not known to be stored.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PublishError {
    /// A worker would refuse the job. It was not published.
    #[error(transparent)]
    Job(#[from] JobError),
    /// There is no connection. The job was not published.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// No confirm in time, as under a memory or disk alarm of the broker.
    #[error(
        "the broker did not confirm within {limit:?}; the job may yet arrive: publish it again with the same id"
    )]
    TimedOut {
        /// How long it was waited for.
        limit: Duration,
    },
    /// The connection broke before the confirm.
    #[error(
        "the connection broke ({reason}); the job may have arrived: publish it again with the same id"
    )]
    Broken {
        /// What happened.
        reason: String,
    },
    /// The broker refused to store the job, as a full queue does.
    #[error("the broker refused to store the job: its queue may be full")]
    Refused,
    /// The exchange leads to no queue. The job is not stored.
    #[error(
        "no queue is bound to the exchange {exchange}: start a worker with this prefix, which declares the queues"
    )]
    Returned {
        /// The exchange.
        exchange: String,
    },
    /// The exchange does not exist. The job is not stored.
    #[error(
        "there is no exchange {exchange}: start a worker with this prefix, which declares it, or correct the prefix"
    )]
    NoExchange {
        /// The exchange.
        exchange: String,
    },
    /// This user may not publish there. The job is not stored.
    #[error("this user may not publish to the exchange {exchange}: {reason}")]
    Denied {
        /// The exchange.
        exchange: String,
        /// What the broker said.
        reason: String,
    },
    /// Not tried: the broker had stopped answering before this job's turn came.
    #[error("not published: the broker stopped taking jobs before this one's turn")]
    NotTried,
    /// Not tried: the publisher has been closed.
    #[error("not published: the publisher is closed")]
    Closed,
}

impl PublishError {
    /// What to do about it.
    #[must_use]
    pub const fn verdict(&self) -> Verdict {
        match self {
            Self::Connect(error) => error.verdict(),
            Self::TimedOut { .. }
            | Self::Broken { .. }
            | Self::Refused
            | Self::Returned { .. }
            | Self::NoExchange { .. }
            | Self::NotTried => Verdict::RetrySameId,
            Self::Job(_) | Self::Denied { .. } | Self::Closed => Verdict::DoNotRetry,
        }
    }

    /// Whether the next job would meet with the same.
    pub(crate) const fn concerns_all(&self) -> bool {
        match self {
            Self::Connect(_)
            | Self::TimedOut { .. }
            | Self::NoExchange { .. }
            | Self::Denied { .. }
            | Self::NotTried
            | Self::Closed => true,
            Self::Job(_) | Self::Broken { .. } | Self::Refused | Self::Returned { .. } => false,
        }
    }
}
