//! What an admission of a job would meet at this moment.

use crate::domain::SentRecord;

/// A job's claim at this moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimNow {
    /// Nothing is known of it.
    Free,
    /// An API server has admitted it, and nobody has tried to send it yet.
    Admitted {
        /// When, in milliseconds since the Unix epoch.
        at_ms: u64,
    },
    /// A try is under way.
    UnderWay,
    /// A try was under way, and its time is over without a known result: there will be another.
    Unfinished,
    /// It was sent.
    Sent(SentRecord),
}

/// A frequency cap's count at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapNow {
    /// Messages within its window.
    pub counted: u32,
    /// Whether the job is one of them, so that it passes.
    pub holds_job: bool,
}

/// What an admission of a job would meet at this moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The job's claim.
    pub claim: ClaimNow,
    /// Its frequency caps, in order.
    pub caps: Vec<CapNow>,
    /// What its number has sent in the current window.
    pub number: u32,
    /// What its messaging service has sent in the current window.
    pub service: u32,
    /// What its account has sent in the current window.
    pub account: u32,
}
