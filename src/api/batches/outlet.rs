//! Where the jobs of batches go.

use crate::dispatch::ports::PublishError;
use crate::domain::{Job, JobHeaders};
use crate::embedded::EmbeddedQueues;
use crate::enqueueing::Outlet;
use crate::intake::Outbox;

/// Where the jobs of batches go: to RabbitMQ, over a connection of their own, so that no single
/// message has to wait behind them; or to the queues in this process.
pub enum BatchOutlet {
    /// To RabbitMQ.
    Amqp(Outbox),
    /// To the queues in this process.
    Embedded(EmbeddedQueues),
}

impl Outlet for BatchOutlet {
    async fn publish(&self, jobs: &[Job]) -> Vec<Result<(), PublishError>> {
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
        }
    }
}

impl std::fmt::Debug for BatchOutlet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BatchOutlet").finish_non_exhaustive()
    }
}
