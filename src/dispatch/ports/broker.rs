//! The message broker, as the pipeline sees it.

use std::future::Future;

use jiff::Timestamp;
use thiserror::Error;
use tokio::time::Instant;

use crate::domain::{AccountId, Decoded, JobHeaders, JobId, Lane, Payload};

/// By what an acknowledgement finds its delivery again. Only the broker adapter looks inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Receipt {
    /// Which opening of which queue's channel: no two have the same. Tags mean nothing on another.
    pub epoch: u64,
    /// The delivery's tag on that channel.
    pub tag: u64,
}

/// One message taken from a queue, read but not yet settled.
#[derive(Debug)]
pub struct Delivery {
    /// For its acknowledgement.
    pub receipt: Receipt,
    /// The lane of the queue that it came from, which need not be the lane of the job.
    pub source_lane: Lane,
    /// Whether it came by a queue that only jobs of its account and lane come by.
    pub own_queue: bool,
    /// What earlier rounds have noted.
    pub headers: JobHeaders,
    /// When it arrived in this process.
    pub received_at: Instant,
    /// What reading it gave.
    pub decoded: Decoded,
}

/// Which way back into the queues a job takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Route {
    /// Over a ceiling: back after the shed delay.
    Shed,
    /// Its carrier is out: back after the park delay.
    Park,
    /// It has waited in the database and is due, or came by the other lane's queue: to the lane's
    /// queue, as publishers send it.
    Queue,
    /// An API server has admitted it: to the queue that is drained first within the lane.
    Admitted,
}

/// A job on its way back into a queue, byte for byte as it came.
#[derive(Debug, Clone)]
pub struct Requeue {
    /// The job, to tell its publish from others.
    pub id: JobId,
    /// The account, for the routing key.
    pub account: AccountId,
    /// The job's resolved lane: it returns there, wherever it came from.
    pub lane: Lane,
    /// Delay queue or parking queue.
    pub route: Route,
    /// The headers for the next round.
    pub headers: JobHeaders,
    /// The message.
    pub payload: Payload,
}

/// An undecodable message on its way to the dead queue.
#[derive(Debug, Clone)]
pub struct DeadLetter {
    /// The reason, from a closed list.
    pub reason: &'static str,
    /// What exactly was wrong.
    pub detail: String,
    /// When it was found to be so.
    pub at: Timestamp,
    /// The message.
    pub payload: Payload,
}

/// Outcome events of one outcome and account, to be published as one message.
#[derive(Debug, Clone)]
pub struct EventBatch {
    /// The account, for the routing key.
    pub account: AccountId,
    /// The outcome's name, for the routing key.
    pub outcome: &'static str,
    /// A JSON array of 1 to 256 events.
    pub body: Vec<u8>,
}

/// Why a publish is not known to be stored. Whatever the reason, the original is kept and the
/// publish tried again later; a publish that timed out may still arrive, as a duplicate that the
/// claims catch.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PublishError {
    /// There is no connection to publish on just now.
    #[error("there is no connection to the broker")]
    Disconnected,
    /// The broker takes no publishes just now, as under an alarm: nothing was handed to it.
    #[error("the broker takes no messages just now")]
    NotTried,
    /// The broker has not confirmed in time. It may yet store the message.
    #[error("the broker did not confirm in time")]
    TimedOut,
    /// No queue is bound where the message should go.
    #[error("no queue is bound to {exchange}")]
    Returned {
        /// The exchange that found no queue.
        exchange: String,
    },
    /// The broker refused to store it.
    #[error("the broker refused the message")]
    Refused,
    /// The channel or connection broke meanwhile.
    #[error("the channel broke: {0}")]
    Broken(String),
}

impl PublishError {
    /// Whether the broker surely has not stored the message.
    #[must_use]
    pub const fn is_certain(&self) -> bool {
        match self {
            Self::Disconnected | Self::NotTried | Self::Returned { .. } | Self::Refused => true,
            Self::TimedOut | Self::Broken(_) => false,
        }
    }
}

/// The message broker, as the pipeline sees it.
pub trait Broker: Send + Sync + 'static {
    /// Publishes jobs back into the delay or parking queues, mandatory and confirmed.
    /// One result per job, in order.
    fn requeue(
        &self,
        jobs: Vec<Requeue>,
    ) -> impl Future<Output = Vec<Result<(), PublishError>>> + Send;

    /// Publishes to the dead queue, mandatory and confirmed. One result per letter, in order.
    fn bury(
        &self,
        letters: Vec<DeadLetter>,
    ) -> impl Future<Output = Vec<Result<(), PublishError>>> + Send;

    /// Publishes outcome events, confirmed. One result per batch, in order.
    fn announce(
        &self,
        batches: Vec<EventBatch>,
    ) -> impl Future<Output = Vec<Result<(), PublishError>>> + Send;

    /// Stops or starts taking deliveries of a lane. What was delivered stays settleable; a few may
    /// still arrive after a stop.
    fn take(&self, lane: Lane, taking: bool);

    /// Returns deliveries to their queues, for whoever takes them next. To be used sparingly: from
    /// version 4 on a broker drops a message after a number of returns.
    fn give_back(&self, receipts: Vec<Receipt>);

    /// Hands over deliveries for acknowledgement. Receipts of a channel that is gone are dropped:
    /// the broker delivers those messages again.
    fn acknowledge(&self, receipts: Vec<Receipt>);

    /// Whether a delivery can still be acknowledged.
    fn is_live(&self, receipt: &Receipt) -> bool;
}
