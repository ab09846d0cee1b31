//! The broker of a simulated run.

use std::sync::Arc;

use super::Outside;
use crate::dispatch::ports::{Broker, DeadLetter, EventBatch, PublishError, Receipt, Requeue};
use crate::domain::Lane;
use crate::embedded::Session;

/// A broker session whose publishes may fail.
pub struct UnsureBroker {
    pub session: Arc<Session>,
    pub outside: Outside,
}

impl UnsureBroker {
    /// Runs a publish, unless it fails, and loses its answer now and then.
    async fn publish<T>(
        &self,
        items: Vec<T>,
        publish: impl AsyncFnOnce(Vec<T>) -> Vec<Result<(), PublishError>>,
    ) -> Vec<Result<(), PublishError>> {
        self.outside.pass(30).await;
        let faults = self.outside.plan.faults;
        if self.outside.happens(faults.publish_fails) {
            return items
                .iter()
                .map(|_| Err(PublishError::Disconnected))
                .collect();
        }
        let results = publish(items).await;
        self.outside.pass(5).await;
        if self.outside.happens(faults.publish_reply_lost) {
            return results
                .iter()
                .map(|_| Err(PublishError::TimedOut))
                .collect();
        }
        results
    }
}

impl Broker for UnsureBroker {
    async fn requeue(&self, jobs: Vec<Requeue>) -> Vec<Result<(), PublishError>> {
        for job in &jobs {
            self.outside
                .seen()
                .ready
                .values_mut()
                .for_each(|ready| drop(ready.remove(job.id.as_str())));
        }
        self.publish(jobs, async |jobs| self.session.requeue(jobs).await)
            .await
    }

    async fn bury(&self, letters: Vec<DeadLetter>) -> Vec<Result<(), PublishError>> {
        self.publish(letters, async |letters| self.session.bury(letters).await)
            .await
    }

    async fn announce(&self, batches: Vec<EventBatch>) -> Vec<Result<(), PublishError>> {
        self.publish(batches, async |batches| {
            self.session.announce(batches).await
        })
        .await
    }

    fn take(&self, lane: Lane, taking: bool) {
        self.session.take(lane, taking);
    }

    fn give_back(&self, receipts: Vec<Receipt>) {
        self.session.give_back(receipts);
    }

    fn acknowledge(&self, receipts: Vec<Receipt>) {
        self.session.acknowledge(receipts);
    }

    fn is_live(&self, receipt: &Receipt) -> bool {
        self.session.is_live(receipt)
    }
}
