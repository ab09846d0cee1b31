//! The budgets: one counter per account, shared by all replicas, and what happens without it.
//! Below the account's there are ceilings of sender numbers and messaging services, and frequency
//! caps, which count what each recipient has had.
//!
//! [`RedisStore`] keeps the shared counters, the caps' counts and the claims, [`MemoryStore`] does the same within
//! one process. [`Failover`] stands in front of either: it answers always, and in time.

use std::future::Future;

use thiserror::Error;

use crate::dispatch::ports::{AccountRequest, Conclusion, JobRequest};
use crate::domain::{AccountId, Counter, Verdict};

mod any;
mod caps;
mod claims;
mod expiring;
mod failover;
mod local;
mod memory;
mod redis;
mod standing;
mod targets;

pub use any::AnyMeter;
pub use failover::{Failover, FailoverOptions};
pub use memory::MemoryStore;
pub use redis::{RedisOptions, RedisOptionsError, RedisStore, look};
pub use standing::{CapNow, ClaimNow, Standing};

/// A store's answer for one account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreAnswer {
    /// One verdict per job asked about, in order.
    pub verdicts: Vec<Verdict>,
    /// The counter after them.
    pub counter: Counter,
    /// The store's time of the decision, in milliseconds since the Unix epoch.
    pub at_ms: u64,
}

/// Why the store of shared counters gave no answer. A closed list: the metric of decisions that
/// fell open is labelled with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum StoreError {
    /// Nothing answers there.
    #[error("the store of counters cannot be reached")]
    Unreachable,
    /// No answer in time; whether anything was counted is unknown.
    #[error("the store of counters did not answer in time")]
    TimedOut,
    /// It answers but takes no writes: a replica, or out of memory or disk.
    #[error("the store of counters takes no writes")]
    ReadOnly,
    /// It answers but lets us in no more: a wrong password, a missing right.
    #[error("the store of counters refused our credentials")]
    Denied,
    /// Any other error, such as a server still loading its data.
    #[error("the store of counters answered with an error")]
    Failed,
}

impl StoreError {
    /// Every error.
    pub const ALL: [Self; 5] = [
        Self::Unreachable,
        Self::TimedOut,
        Self::ReadOnly,
        Self::Denied,
        Self::Failed,
    ];

    /// The label in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::TimedOut => "timed_out",
            Self::ReadOnly => "read_only",
            Self::Denied => "denied",
            Self::Failed => "failed",
        }
    }
}

/// A place where all replicas count together and claims are kept.
pub trait CounterStore: Send + Sync + 'static {
    /// One atomic check-then-count per account, by the rules of [`Meter::admit`]. One result per
    /// request, in order.
    ///
    /// [`Meter::admit`]: crate::dispatch::ports::Meter::admit
    fn admit(
        &self,
        requests: &[AccountRequest],
    ) -> impl Future<Output = Vec<Result<StoreAnswer, StoreError>>> + Send;

    /// Records how tries ended. Recording the same conclusion twice changes nothing.
    fn conclude(
        &self,
        conclusions: &[Conclusion],
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// What an admission of the job would meet. Nothing is changed by asking.
    fn look(
        &self,
        account: &AccountId,
        job: &JobRequest,
    ) -> impl Future<Output = Result<Standing, StoreError>> + Send;

    /// Whether it would take writes now.
    fn probe(&self) -> impl Future<Output = Result<(), StoreError>> + Send;
}
