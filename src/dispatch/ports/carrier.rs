//! A carrier, as the pipeline sees it.

use std::borrow::Cow;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::domain::Job;

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
