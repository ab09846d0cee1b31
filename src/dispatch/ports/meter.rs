//! The keeper of budgets, as the pipeline sees it.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::domain::{AccountId, Ceilings, Counter, JobId, Lane, MeterMode, Verdict};

/// One try of a job, told apart from all other tries of it, by any worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TryId(pub u64);

/// A ceiling below the account's own: that of a sender number or of a messaging service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetCeiling {
    /// The number or service, in normalised form.
    pub target: Box<str>,
    /// Messages per second, at least 1; counted in windows like those of accounts.
    pub per_second: u32,
}

/// One cap's count for one recipient: of jobs, each of them once, however often it is tried.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CapKey {
    /// The cap's name.
    pub cap: Arc<str>,
    /// The recipient's digest: the store never sees recipients themselves.
    pub recipient: Arc<str>,
}

/// A frequency cap that a job must pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapRequest {
    /// Whose count.
    pub key: CapKey,
    /// Messages within the window, at least 1.
    pub limit: u32,
    /// The rolling window.
    pub window: Duration,
}

/// Who asks about a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// A worker that is about to send it.
    Worker,
    /// A worker that is about to send it, after an API server admitted it: for one second by the
    /// store's clock neither ceilings nor caps look at it again.
    Paid {
        /// When it was admitted, in milliseconds since the Unix epoch, by the store's clock.
        at_ms: u64,
    },
    /// An API server that is about to queue it. Its claim says "admitted" and keeps no worker from
    /// sending the job.
    Api,
}

/// One job that asks to be admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRequest {
    /// The job.
    pub id: JobId,
    /// Its lane, which chooses the ceiling.
    pub lane: Lane,
    /// Who asks.
    pub door: Door,
    /// The try that the claim is for.
    pub try_id: TryId,
    /// How long a result may take: the carrier's time-out and one second.
    pub claim_for: Duration,
    /// The frequency caps that concern it, none of them twice. Where jobs of one request disagree
    /// about a cap's or a target's terms, those of the first such job hold.
    pub caps: Vec<CapRequest>,
    /// The ceiling of its sender, where there is one.
    pub number: Option<TargetCeiling>,
    /// The ceiling of its messaging service, where there is one.
    pub service: Option<TargetCeiling>,
}

impl JobRequest {
    /// A request that asks about the job's claim and nothing else. It is for looking: whoever admits
    /// a job knows more of it.
    #[must_use]
    pub const fn bare(id: JobId) -> Self {
        Self {
            id,
            lane: Lane::Transactional,
            door: Door::Api,
            try_id: TryId(0),
            claim_for: Duration::ZERO,
            caps: Vec::new(),
            number: None,
            service: None,
        }
    }
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
    /// When it was decided, in milliseconds since the Unix epoch: by the store's clock, or by this
    /// process's own where it decided.
    pub at_ms: u64,
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
    /// Counts of frequency caps that the job gives up, because it has ended and will not be sent.
    /// A job of which a try may still have arrived, by what its claim says, gives up none.
    pub frees: Vec<CapKey>,
}

impl Conclusion {
    /// Whether the job gives up counts of frequency caps, as far as this try alone can say.
    #[must_use]
    pub fn gives_up(&self) -> bool {
        self.result == TryResult::NotSent && !self.frees.is_empty()
    }
}

/// The budgets' keeper. It always answers, and within 50 ms: when the shared counter is away, from
/// this process's own.
pub trait Meter: Send + Sync + 'static {
    /// Checks of each job in order its claim, its caps and the ceilings of its number, its service
    /// and its lane, and counts what passes. What one check turns away has changed nothing of
    /// another. One answer per request, in order. Without the shared counter caps let everything
    /// pass, and ceilings hold for this process alone.
    fn admit(
        &self,
        requests: Vec<AccountRequest>,
    ) -> impl Future<Output = Vec<AccountAnswer>> + Send;

    /// Records how tries ended; what cannot be recorded now is remembered here.
    fn conclude(&self, conclusions: Vec<Conclusion>) -> impl Future<Output = ()> + Send;
}
