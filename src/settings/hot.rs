//! `[hot]`: when accounts get queues of their own.

use std::time::Duration;

use super::SettingsError;
use super::reader::Section;

/// When accounts get queues of their own, and lose them.
#[derive(Debug, Clone, Copy)]
pub struct Hot {
    /// So many of an account's jobs over its ceiling in one lane...
    pub jobs: u32,
    /// ...within this time are pressure.
    pub within: Duration,
    /// The most such queues; 0: no more are made. A worker has a channel for each on one connection, and
    /// brokers allow 2,047 of them by default.
    pub most: u32,
    /// Queues that are made beforehand, for each lane: so many accounts get theirs at once.
    pub spare: u32,
    /// For how long no job may have waited for its account's ceiling before the account shares again.
    pub idle: Duration,
    /// How long everything is left to settle before a queue is given up.
    pub settle: Duration,
}

impl Hot {
    pub(super) fn read(section: &Section<'_>) -> Result<Self, SettingsError> {
        Ok(Self {
            jobs: section.count("jobs", 1..=1_000_000)?,
            within: section.millis("within_ms", 100..=60_000)?,
            most: section.count("most", 0..=1_000)?,
            spare: section.count("spare", 1..=64)?,
            idle: section.seconds("idle_s", 1..=86_400)?,
            settle: section.seconds("settle_s", 1..=3_600)?,
        })
    }
}
