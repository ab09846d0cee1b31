//! What the meter says about a job.

use std::sync::Arc;
use std::time::Duration;

/// What kept a job from passing now. A closed list: metric labels come from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Limit {
    /// The account's ceiling for the job's lane.
    Lane,
    /// The ceiling of the sender number.
    Number,
    /// The ceiling of the messaging service.
    Service,
    /// Another try of the same job is under way.
    Claim,
}

impl Limit {
    /// Every limit.
    pub const ALL: [Self; 4] = [Self::Lane, Self::Number, Self::Service, Self::Claim];

    /// The name in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lane => "lane",
            Self::Number => "number",
            Self::Service => "service",
            Self::Claim => "claim",
        }
    }
}

/// What is known of a job that a carrier has accepted before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentRecord {
    /// When it was recorded as sent, in milliseconds since the Unix epoch, by the store's clock.
    pub at_ms: u64,
    /// The carrier that took it.
    pub carrier: Arc<str>,
    /// The carrier's own reference, where it gave one.
    pub carrier_ref: Option<Arc<str>>,
}

/// A frequency cap that is used up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capped {
    /// The cap's name.
    pub cap: Arc<str>,
    /// When the oldest message that it counts leaves its window, in milliseconds since the Unix
    /// epoch, by the store's clock.
    pub until_ms: u64,
}

/// The meter's answer for one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The job was counted and claimed: it must start now.
    Admitted {
        /// An earlier try ended without a known result, so the recipient may get the message
        /// twice: to be counted.
        possible_duplicate: bool,
    },
    /// An API server has admitted the job before, and no worker has tried it yet; nothing was
    /// counted again. Only API servers are told so.
    AdmittedBefore {
        /// When, in milliseconds since the Unix epoch, by the store's clock.
        at_ms: u64,
    },
    /// Not now; nothing was counted.
    Shed(Limit),
    /// The recipient has had as many messages as a frequency cap allows; nothing was counted.
    Capped(Capped),
    /// Sent before: never to be sent again, nothing was counted.
    Duplicate(SentRecord),
}

/// An account's counter after a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counter {
    /// Messages admitted in the current window, both lanes together.
    pub count: u32,
    /// How long the current window still lasts; zero when there is none.
    pub window_left: Duration,
}

/// Whose counter decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MeterMode {
    /// The counter that all replicas share.
    Shared,
    /// This process's own counter, because the shared one did not answer.
    Local,
}

impl MeterMode {
    /// Both modes.
    pub const ALL: [Self; 2] = [Self::Shared, Self::Local];

    /// The name in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Local => "local",
        }
    }
}
