//! Where accepted jobs go: to RabbitMQ, or to the queues in this process.

use tokio::time::Instant;

use crate::dispatch::ports::{PublishError, Requeue};
use crate::domain::{Job, JobHeaders, Lane};
use crate::embedded::EmbeddedQueues;
use crate::enqueueing::Outlet;
use crate::intake::Outbox;

/// Where accepted jobs go.
pub enum AnyOutbox {
    /// To RabbitMQ.
    Amqp(Outbox),
    /// To the queues in this process.
    Embedded(EmbeddedQueues),
    /// To a broker that answers with this.
    #[cfg(test)]
    Failing(PublishError),
}

impl AnyOutbox {
    /// Publishes jobs, each by its route. One result per job, in order: `Ok` once it is stored.
    pub async fn publish(&self, jobs: Vec<Requeue>) -> Vec<Result<(), PublishError>> {
        match self {
            Self::Amqp(outbox) => outbox.publish(jobs).await,
            Self::Embedded(queues) => {
                queues.requeue(&jobs);
                jobs.iter().map(|_| Ok(())).collect()
            }
            #[cfg(test)]
            Self::Failing(error) => jobs.iter().map(|_| Err(error.clone())).collect(),
        }
    }

    /// Whether a job that is admitted for a lane now would be handed over.
    ///
    /// # Errors
    /// Why not, for certain.
    pub fn takes_admitted(&self, lane: Lane) -> Result<(), PublishError> {
        match self {
            Self::Amqp(outbox) => outbox.takes_admitted(lane),
            Self::Embedded(_) => Ok(()),
            #[cfg(test)]
            Self::Failing(PublishError::NotTried) => Err(PublishError::NotTried),
            #[cfg(test)]
            Self::Failing(_) => Ok(()),
        }
    }

    /// Takes leave of the broker, by `deadline` at the latest.
    pub async fn close(&self, deadline: Instant) {
        if let Self::Amqp(outbox) = self {
            outbox.close(deadline).await;
        }
    }

    /// Why nothing can be published just now, if so.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        match self {
            Self::Amqp(outbox) => outbox.trouble(),
            Self::Embedded(_) => None,
            #[cfg(test)]
            Self::Failing(error) => Some(error.to_string()),
        }
    }
}

/// Jobs of batches go where any publisher's go: to their lanes' queues, unmetered.
impl Outlet for AnyOutbox {
    async fn queue(&self, jobs: &[Job]) -> Vec<Result<(), PublishError>> {
        match self {
            Self::Amqp(outbox) => outbox.queue(jobs).await,
            Self::Embedded(queues) => {
                let put = |job: &Job| {
                    let payload = job.payload.to_bytes();
                    queues.publish(job.lane(), payload, JobHeaders::default());
                    Ok(())
                };
                jobs.iter().map(put).collect()
            }
            #[cfg(test)]
            Self::Failing(error) => jobs.iter().map(|_| Err(error.clone())).collect(),
        }
    }
}

impl std::fmt::Debug for AnyOutbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AnyOutbox").finish_non_exhaustive()
    }
}
