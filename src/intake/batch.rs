//! One batch of confirmed publishes, published and judged as every publisher does it; what is
//! added here is whether the queues need declaring again.

use lanekeeper_client::wire::{self, Failure, Late};
use lapin::Channel;
use tokio::time::Instant;

use crate::dispatch::ports::PublishError;

use super::outgoing::Outgoing;
use super::passive::NOT_FOUND;

/// What became of a batch.
pub(super) struct Judged {
    /// One result per message, in order.
    pub(super) results: Vec<Result<(), PublishError>>,
    /// Whether an exchange or a binding seems to be missing.
    pub(super) topology_is_missing: bool,
}

/// Publishes all messages at once and judges them when the last confirm is in, or at the deadline.
/// The confirms that did not come in time are given back: what they confirm may yet be carried
/// out, so they are to be watched to their end.
pub(super) async fn publish(
    channel: &Channel,
    messages: Vec<Outgoing>,
    deadline: Instant,
) -> (Judged, Late) {
    let messages = messages.into_iter().map(Outgoing::into_message).collect();
    let (results, late) = wire::publish(channel, messages, deadline).await;
    let mut failures = results.iter().filter_map(|result| result.as_ref().err());
    let judged = Judged {
        topology_is_missing: failures.any(shows_missing_topology),
        results: results
            .into_iter()
            .map(|result| result.map_err(PublishError::from))
            .collect(),
    };
    (judged, late)
}

fn shows_missing_topology(failure: &Failure) -> bool {
    match failure {
        Failure::Returned { .. } => true,
        Failure::Broken { code, .. } => *code == Some(NOT_FOUND),
        Failure::TimedOut | Failure::Refused => false,
    }
}

impl From<Failure> for PublishError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::TimedOut => Self::TimedOut,
            Failure::Refused => Self::Refused,
            Failure::Returned { exchange } => Self::Returned { exchange },
            Failure::Broken { reason, .. } => Self::Broken(reason),
        }
    }
}
