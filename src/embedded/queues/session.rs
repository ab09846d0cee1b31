//! One consumer's session with the broker in memory.

use super::{EmbeddedQueues, Told};
use crate::dispatch::ports::{Broker, DeadLetter, EventBatch, PublishError, Receipt, Requeue};
use crate::domain::Lane;

/// One consumer's session. What it has not settled when it is dropped comes again.
#[derive(Debug)]
pub struct Session {
    pub(super) queues: EmbeddedQueues,
    pub(super) source: u32,
}

impl Session {
    /// Breaks the session and opens it anew: everything unsettled comes again, and receipts from
    /// before are worthless.
    pub fn reconnect(&self) {
        let mut state = self.queues.lock();
        state.return_unsettled(self.source);
        state.next_epoch += 1;
        let epoch = state.next_epoch;
        if let Some(consumer) = state.consumers.get_mut(&self.source) {
            consumer.epoch = epoch;
        }
        state.deliver();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let mut state = self.queues.lock();
        state.return_unsettled(self.source);
        state.consumers.remove(&self.source);
        state.deliver();
    }
}

impl Broker for Session {
    async fn requeue(&self, jobs: Vec<Requeue>) -> Vec<Result<(), PublishError>> {
        self.queues.requeue(&jobs);
        jobs.iter().map(|_| Ok(())).collect()
    }

    async fn bury(&self, letters: Vec<DeadLetter>) -> Vec<Result<(), PublishError>> {
        let results = letters.iter().map(|_| Ok(())).collect();
        self.queues.lock().dead.extend(letters);
        results
    }

    async fn announce(&self, batches: Vec<EventBatch>) -> Vec<Result<(), PublishError>> {
        let results = batches.iter().map(|_| Ok(())).collect();
        let told = batches.into_iter().map(|batch| Told {
            outcome: batch.outcome,
            body: batch.body,
        });
        self.queues.lock().told.extend(told);
        results
    }

    fn take(&self, lane: Lane, taking: bool) {
        let mut state = self.queues.lock();
        if let Some(consumer) = state.consumers.get_mut(&self.source) {
            consumer.taking[lane.index()] = taking;
        }
        state.deliver();
    }

    fn give_back(&self, receipts: Vec<Receipt>) {
        let mut state = self.queues.lock();
        state.give_back(self.source, &receipts);
        state.deliver();
    }

    fn acknowledge(&self, receipts: Vec<Receipt>) {
        let mut state = self.queues.lock();
        let Some(consumer) = state.consumers.get_mut(&self.source) else {
            return;
        };
        for receipt in receipts
            .iter()
            .filter(|receipt| receipt.epoch == consumer.epoch)
        {
            if let Some((lane, _)) = consumer.unsettled.remove(&receipt.tag) {
                consumer.unsettled_by_lane[lane.index()] -= 1;
            }
        }
        state.deliver();
    }

    fn is_live(&self, receipt: &Receipt) -> bool {
        let state = self.queues.lock();
        state
            .consumers
            .get(&self.source)
            .is_some_and(|consumer| consumer.epoch == receipt.epoch)
    }
}
