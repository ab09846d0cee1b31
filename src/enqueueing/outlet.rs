//! Where jobs are published.

use crate::dispatch::ports::PublishError;
use crate::domain::Job;
use crate::intake::Feed;

/// A way into the queues for new jobs.
pub trait Outlet: Send + Sync {
    /// Publishes jobs as any publisher does, mandatory and confirmed. One result per job, in order.
    fn queue(&self, jobs: &[Job]) -> impl Future<Output = Vec<Result<(), PublishError>>> + Send;
}

impl Outlet for Feed {
    async fn queue(&self, jobs: &[Job]) -> Vec<Result<(), PublishError>> {
        self.publish(jobs).await
    }
}
