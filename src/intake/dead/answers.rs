//! What the broker answers about the dead queue, awaited for a limited time.

use std::time::Duration;

use lapin::Channel;
use lapin::types::ShortString;
use tokio::time::timeout;

use crate::intake::connection::explain;
use crate::intake::passive;

use super::error::DeadError;

/// The broker's code for what the user has no right to.
pub(super) const REFUSED: u16 = 403;

/// Asks the broker, and says which queue was in hand when it does not answer.
pub(super) struct Answers {
    pub(super) queue: ShortString,
    pub(super) limit: Duration,
}

impl Answers {
    /// Waits for an answer.
    pub(super) async fn within<T>(
        &self,
        answer: impl Future<Output = lapin::Result<T>>,
    ) -> Result<T, DeadError> {
        self.raw(answer)
            .await?
            .map_err(|error| self.broken(explain(&error)))
    }

    /// The same, for those who know what to make of a refusal.
    pub(super) async fn raw<T>(&self, answer: impl Future<Output = T>) -> Result<T, DeadError> {
        let limit = self.limit;
        let silent = |_| self.broken(format!("the broker did not answer in {limit:?}"));
        timeout(limit, answer).await.map_err(silent)
    }

    /// How many messages nobody has taken.
    pub(super) async fn ready(&self, channel: &Channel) -> Result<u64, DeadError> {
        let found = passive::find(channel, self.queue.clone());
        let queue = self.within(found).await?;
        let queue = queue.ok_or_else(|| DeadError::NoQueue {
            queue: self.queue.to_string(),
        })?;
        Ok(queue.message_count().into())
    }

    pub(super) fn broken(&self, reason: String) -> DeadError {
        DeadError::Broken {
            queue: self.queue.to_string(),
            reason,
        }
    }
}
