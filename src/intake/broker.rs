//! The broker port, over AMQP.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use crate::dispatch::ports::{Broker, DeadLetter, EventBatch, PublishError, Receipt, Requeue};

use crate::domain::Lane;

use super::names::Names;
use super::outgoing::Outgoing;
use super::publisher::Publisher;
use super::settle::Settle;
use super::status::{Readiness, Status};

/// The message broker, as the pipeline sees it. Cheap to clone.
#[derive(Clone)]
pub struct AmqpBroker {
    pub(super) names: Names,
    pub(super) publisher: Arc<Publisher>,
    pub(super) settle: mpsc::UnboundedSender<Settle>,
    pub(super) status: Arc<Status>,
    /// Whether deliveries are taken, by lane.
    pub(super) taking: watch::Sender<[bool; 2]>,
}

impl AmqpBroker {
    /// How the adapter is doing now. Cheap.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        self.status.readiness()
    }

    async fn publish<T>(
        &self,
        items: Vec<T>,
        message: impl Fn(&Names, T) -> Outgoing,
    ) -> Vec<Result<(), PublishError>> {
        let messages = items.into_iter().map(|item| message(&self.names, item));
        self.publisher.publish(messages.collect()).await
    }
}

impl Broker for AmqpBroker {
    async fn requeue(&self, jobs: Vec<Requeue>) -> Vec<Result<(), PublishError>> {
        self.publish(jobs, Outgoing::requeue).await
    }

    async fn bury(&self, letters: Vec<DeadLetter>) -> Vec<Result<(), PublishError>> {
        self.publish(letters, Outgoing::dead).await
    }

    async fn announce(&self, batches: Vec<EventBatch>) -> Vec<Result<(), PublishError>> {
        self.publish(batches, Outgoing::events).await
    }

    fn take(&self, lane: Lane, taking: bool) {
        self.taking
            .send_if_modified(|now| std::mem::replace(&mut now[lane.index()], taking) != taking);
    }

    fn give_back(&self, receipts: Vec<Receipt>) {
        drop(self.settle.send(Settle::Returned(receipts)));
    }

    fn acknowledge(&self, receipts: Vec<Receipt>) {
        // After the end of the settling task the broker delivers everything again anyway.
        drop(self.settle.send(Settle::Finished(receipts)));
    }

    fn is_live(&self, receipt: &Receipt) -> bool {
        self.status.is_live(receipt)
    }
}
