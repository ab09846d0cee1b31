//! What the pipeline needs of the outside: a broker, a meter, a carrier, a clock.
//!
//! Each port has a real adapter and an embedded one, so that the whole pipeline also runs in one
//! process under paused time.

use std::borrow::Cow;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use thiserror::Error;
use tokio::time::Instant;

use crate::domain::{
    AccountId, Ceilings, Counter, Decoded, Job, JobHeaders, JobId, Lane, MeterMode, Payload,
    Verdict,
};

/// The wall clock. Durations are measured with [`Instant`], which tests can pause; the wall clock
/// only serves instants that come from or go to the outside.
pub trait Clock: Send + Sync + 'static {
    /// The present instant.
    fn now(&self) -> Timestamp;
}

/// By what an acknowledgement finds its delivery again. Only the broker adapter looks inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Receipt {
    /// The queue consumed from, as the adapter numbers them.
    pub source: u32,
    /// Which opening of that queue's channel; tags mean nothing on a later one.
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
    /// The broker has not confirmed in time.
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

    /// Hands over deliveries for acknowledgement. Receipts of a channel that is gone are dropped:
    /// the broker delivers those messages again.
    fn acknowledge(&self, receipts: Vec<Receipt>);

    /// Whether a delivery can still be acknowledged.
    fn is_live(&self, receipt: &Receipt) -> bool;
}

/// One try of a job, told apart from all other tries of it, by any worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TryId(pub u64);

/// One job that asks to be admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRequest {
    /// The job.
    pub id: JobId,
    /// Its lane, which chooses the ceiling.
    pub lane: Lane,
    /// The try that the claim is for.
    pub try_id: TryId,
    /// How long a result may take: the carrier's time-out and one second.
    pub claim_for: Duration,
}

/// All jobs of one account in a batch, in the order in which they should be admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountRequest {
    /// The account.
    pub account: AccountId,
    /// Its ceilings.
    pub ceilings: Ceilings,
    /// Its jobs.
    pub jobs: Vec<JobRequest>,
}

/// The meter's answer for one account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountAnswer {
    /// One verdict per job asked about, in order.
    pub verdicts: Vec<Verdict>,
    /// The counter after them.
    pub counter: Counter,
    /// Whose counter it is.
    pub mode: MeterMode,
}

/// How one try ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TryResult {
    /// The carrier has it.
    Sent {
        /// The carrier's name in the settings.
        carrier: Arc<str>,
        /// The carrier's own reference.
        carrier_ref: Option<Arc<str>>,
    },
    /// The carrier does not have it.
    NotSent,
    /// Nobody knows.
    Unknown,
}

/// A try and its end, to be recorded in the job's claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conclusion {
    /// The account.
    pub account: AccountId,
    /// The job.
    pub id: JobId,
    /// The try.
    pub try_id: TryId,
    /// Its end.
    pub result: TryResult,
}

/// The budgets' keeper. It always answers, and within 50 ms: when the shared counter is away, from
/// this process's own.
pub trait Meter: Send + Sync + 'static {
    /// Checks claims and ceilings and counts what passes. One answer per request, in order.
    fn admit(
        &self,
        requests: Vec<AccountRequest>,
    ) -> impl Future<Output = Vec<AccountAnswer>> + Send;

    /// Records how tries ended; what cannot be recorded now is remembered here.
    fn conclude(&self, conclusions: Vec<Conclusion>) -> impl Future<Output = ()> + Send;
}

/// A carrier's acceptance.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Accepted {
    /// The carrier's own reference, where it gave one.
    pub carrier_ref: Option<Arc<str>>,
}

/// What a failed try means for the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendVerdict {
    /// The carrier said no for good: the job has failed.
    Rejected,
    /// The carrier is at work and certainly does not have it, because we ask too often.
    Throttled,
    /// The carrier certainly does not have it: try again.
    NotSent,
    /// It may or may not have it: try again with the same idempotency key, counted.
    Unknown,
}

/// A failed try.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{detail}")]
pub struct SendError {
    /// What it means.
    pub verdict: SendVerdict,
    /// How long the carrier asked to be left alone, already capped.
    pub retry_after: Option<Duration>,
    /// What happened; never a recipient, content or address with credentials.
    pub detail: Cow<'static, str>,
}

/// A way to hand a message to the outside world.
pub trait Carrier: Send + Sync + 'static {
    /// Tries to hand over one job; `attempt` counts from 1. Must end within the carrier's time-out.
    fn send(
        &self,
        job: &Job,
        attempt: u32,
    ) -> impl Future<Output = Result<Accepted, SendError>> + Send;
}
