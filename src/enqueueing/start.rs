//! Where a run begins.

use jiff::Timestamp;

use super::counts::Counts;

/// How far an earlier run has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mark {
    /// All good rows up to this line are stored; 0 before the first.
    pub line: u64,
    /// What became of the rows up to there.
    pub counts: Counts,
}

/// How a run begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// The instant that every job of the run says it was queued at.
    pub enqueued_at: Timestamp,
    /// The rows that are not queued again.
    pub mark: Mark,
}
