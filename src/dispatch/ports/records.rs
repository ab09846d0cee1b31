//! What is written down, as the pipeline sees it.

use std::borrow::Cow;
use std::future::Future;
use std::sync::Arc;

use jiff::Timestamp;
use thiserror::Error;

use super::meter::TargetCeiling;
use crate::domain::{
    AccountId, Channel, JobHead, JobHeaders, JobId, Lane, MeterMode, Outcome, Payload, SentRecord,
};

/// What is asked about a job before it is sent.
#[derive(Debug, Clone)]
pub struct Inquiry<'a> {
    /// The job's account.
    pub account: &'a AccountId,
    /// The job.
    pub id: &'a JobId,
    /// Its channel.
    pub channel: Channel,
    /// Its recipient, in the form in which opt-outs are kept.
    pub recipient: Cow<'a, str>,
    /// The campaign it belongs to.
    pub campaign: Option<&'a str>,
    /// The journey it belongs to.
    pub journey: Option<&'a str>,
    /// The batch it belongs to.
    pub batch: Option<&'a str>,
    /// Whether it may be older than its claim: then the ledger is asked whether it was sent.
    pub maybe_sent: bool,
    /// When it was queued first, in milliseconds since the Unix epoch, where that is known: the
    /// ledger, which is kept by days, need not be searched for an earlier send.
    pub enqueued_ms: Option<u64>,
}

/// What an operator has said of an account, campaign, journey or batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hold {
    /// Not now.
    Paused,
    /// Never.
    Cancelled,
}

/// What is known of a job before it is sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// Whether the recipient has opted out of the channel, or of all.
    pub opted_out: bool,
    /// The gravest hold on anything that the job belongs to.
    pub hold: Option<Hold>,
    /// Whether the account itself is paused, rather than something smaller that the job belongs to.
    pub account_paused: bool,
    /// The ledger's word that it was sent.
    pub sent: Option<SentRecord>,
}

/// Why a job waits in the database. A closed list: metric labels come from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WaitReason {
    /// Its publisher wants it to be sent later.
    NotBefore,
    /// It is outside the recipient's hours, and the account defers such jobs.
    QuietHours,
    /// Something that it belongs to is paused.
    Paused,
    /// The carrier has asked to be left alone for long.
    RetryAfter,
    /// Many jobs wait for the ceiling of its sender number.
    Number,
    /// Many jobs wait for the ceiling of its messaging service.
    Service,
}

impl WaitReason {
    /// Every reason.
    pub const ALL: [Self; 6] = [
        Self::NotBefore,
        Self::QuietHours,
        Self::Paused,
        Self::RetryAfter,
        Self::Number,
        Self::Service,
    ];

    /// The name in the table and in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotBefore => "not_before",
            Self::QuietHours => "quiet_hours",
            Self::Paused => "paused",
            Self::RetryAfter => "retry_after",
            Self::Number => "number",
            Self::Service => "service",
        }
    }
}

/// When a waiting job is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Due {
    /// At an instant.
    At(Timestamp),
    /// When nothing that it belongs to is paused any more.
    Resumed,
    /// After the others that wait for the same ceiling, at that ceiling's rate.
    InTurn(TargetCeiling),
}

/// A job on its way into the database.
#[derive(Debug, Clone)]
pub struct WaitingJob {
    /// The job.
    pub id: JobId,
    /// Its account.
    pub account: AccountId,
    /// Its lane.
    pub lane: Lane,
    /// Why it waits; tells which kind of ceiling [`Due::InTurn`] speaks of.
    pub reason: WaitReason,
    /// When it is due.
    pub due: Due,
    /// The campaign it belongs to.
    pub campaign: Option<Box<str>>,
    /// The journey it belongs to.
    pub journey: Option<Box<str>>,
    /// The batch it belongs to.
    pub batch: Option<Box<str>>,
    /// The headers for its next round.
    pub headers: JobHeaders,
    /// The message.
    pub payload: Payload,
}

/// A job's admission, for the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admission {
    /// When.
    pub at: Timestamp,
    /// What the account's counter stood at with this job in it.
    pub count: u32,
    /// Whose counter it was.
    pub mode: MeterMode,
}

/// Everything about a job that has ended.
#[derive(Debug, Clone)]
pub struct Ended {
    /// The job.
    pub head: JobHead,
    /// Its recipient, where it could be read: for the ledger, which keeps it hashed or masked.
    pub recipient: Option<Box<str>>,
    /// How it ended.
    pub outcome: Outcome,
    /// What exactly was wrong, where there is more to say than the reason; never a recipient or
    /// content.
    pub detail: Option<Cow<'static, str>>,
    /// The carrier that took or rejected it.
    pub carrier: Option<Arc<str>>,
    /// The carrier's own reference.
    pub carrier_ref: Option<Arc<str>>,
    /// Carrier tries.
    pub attempts: u32,
    /// How often a ceiling sent it back.
    pub sheds: u32,
    /// Its last admission by this worker.
    pub admission: Option<Admission>,
    /// When it ended.
    pub settled_at: Timestamp,
    /// When the gate that refused it will let the recipient's next message pass.
    pub next_allowed_at: Option<Timestamp>,
    /// The outcome of a job that had ended before: told again, not counted again.
    pub repeated: bool,
}

/// Jobs that have ended without a word in the ledger, and will never have one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// Whose they are; `None`: various accounts'.
    pub account: Option<AccountId>,
    /// When the first of them ended.
    pub began_at: Timestamp,
    /// When the last of them ended.
    pub ended_at: Timestamp,
    /// How many they are.
    pub jobs: u64,
}

impl Gap {
    /// That of one job.
    #[must_use]
    pub fn of(ended: &Ended) -> Self {
        Self {
            account: Some(ended.head.account.clone()),
            began_at: ended.settled_at,
            ended_at: ended.settled_at,
            jobs: 1,
        }
    }
}

/// Why the database gave no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum RecordsError {
    /// Nothing answers there, or it lets us in no more.
    #[error("the database cannot be reached")]
    Unreachable,
    /// No answer in time.
    #[error("the database did not answer in time")]
    TimedOut,
    /// It answers with an error.
    #[error("the database answered with an error")]
    Failed,
    /// It answers, and cannot take a value that it was given: without that value it would do what
    /// it was asked.
    #[error("the database cannot take one of the values")]
    Unfit,
}

impl RecordsError {
    /// Whether it may lie in what was asked rather than in the database: then the next question
    /// may well be answered.
    #[must_use]
    pub const fn may_be_the_questions(self) -> bool {
        match self {
            Self::Unreachable | Self::TimedOut => false,
            Self::Failed | Self::Unfit => true,
        }
    }
}

/// What has been written down: opt-outs and holds, jobs that wait, jobs that have ended.
pub trait Records: Send + Sync + 'static {
    /// Whether there is a database at all. Without one nothing is known, nothing can wait, and
    /// nothing is remembered.
    fn exist(&self) -> bool;

    /// What is known of each job, in order, asked in one go. [`RecordsError::Unfit`] when one of
    /// them cannot be asked about.
    fn facts(
        &self,
        inquiries: &[Inquiry<'_>],
    ) -> impl Future<Output = Result<Vec<Facts>, RecordsError>> + Send;

    /// Lets jobs wait: all of them, or on an error none.
    fn keep(&self, jobs: &[WaitingJob]) -> impl Future<Output = Result<(), RecordsError>> + Send;

    /// Writes down how jobs ended, all of them or on an error none. Doing it twice changes nothing.
    /// [`RecordsError::Unfit`] when one of them cannot be written.
    fn write(&self, ended: &[Ended]) -> impl Future<Output = Result<(), RecordsError>> + Send;

    /// Notes what will never be written down, so that nobody waits for it. Doing it twice changes
    /// nothing that matters.
    fn note_gaps(&self, gaps: &[Gap]) -> impl Future<Output = Result<(), RecordsError>> + Send;

    /// Whether questions would be answered now.
    fn probe(&self) -> impl Future<Output = Result<(), RecordsError>> + Send;
}
