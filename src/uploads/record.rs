//! What is kept of a batch.

use std::time::Duration;

use jiff::Timestamp;

use crate::batch::{BatchId, Digest, RowError};
use crate::domain::AccountId;
use crate::enqueueing::{Counts, Mark, Start};

/// By what a run shows that a batch is its own. Two of them are the same by no more than chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease(pub(super) i64);

impl Lease {
    /// One that nobody has.
    #[must_use]
    pub fn new() -> Self {
        Self(fastrand::i64(..))
    }
}

impl Default for Lease {
    fn default() -> Self {
        Self::new()
    }
}

/// Which batch a run is of, and which run.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The account.
    pub account: &'a AccountId,
    /// Its batch.
    pub batch: &'a BatchId,
    /// The run.
    pub lease: Lease,
}

/// What is queued: the same twice makes the same jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// The digest of the rows, in hexadecimal digits.
    pub content: String,
    /// The digest of what else decides what becomes of a row, likewise.
    pub options: String,
}

impl Contents {
    /// Those of these digests.
    #[must_use]
    pub fn new(content: Digest, options: Digest) -> Self {
        Self {
            content: content.to_string(),
            options: options.to_string(),
        }
    }

    /// In what they differ from those of an earlier upload.
    #[must_use]
    pub fn difference(&self, earlier: &Self) -> Option<Difference> {
        if self.content != earlier.content {
            Some(Difference::Content)
        } else if self.options != earlier.options {
            Some(Difference::Options)
        } else {
            None
        }
    }
}

/// In what two uploads of one batch differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// The rows.
    Content,
    /// The parameters.
    Options,
}

/// What is known of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upload {
    /// What it consists of.
    pub contents: Contents,
    /// Where a run begins that goes on.
    pub start: Start,
    /// For how long a run still has it, unless that renews its lease.
    pub busy_for: Option<Duration>,
    /// When it was first uploaded.
    pub created_at: Timestamp,
    /// When something was last noted.
    pub updated_at: Timestamp,
    /// When every good row was in a queue.
    pub finished_at: Option<Timestamp>,
}

impl Upload {
    /// Up to which line everything is settled.
    #[must_use]
    pub const fn mark(&self) -> Mark {
        self.start.mark
    }

    /// What became of the rows up to there.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.start.mark.counts
    }

    /// Whether others may have its name: none of its rows was a job, so that no id of it is in use.
    #[must_use]
    pub fn gives_way_to(&self, contents: &Contents) -> bool {
        let came_to_nothing = self.finished_at.is_some() && self.counts().good() == 0;
        came_to_nothing && contents.difference(&self.contents).is_some()
    }
}

/// How a run begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// The batch is the run's.
    Queue(Start),
    /// All of it is queued already.
    Finished(Box<Upload>),
    /// Another run has it.
    Busy(Box<Upload>),
    /// An upload of that name had other contents.
    Other(Difference),
}

/// How far a run has come.
#[derive(Debug, Clone, Copy)]
pub struct Note<'a> {
    /// Up to where.
    pub mark: Mark,
    /// Rows up to there that were rejected and are to be kept.
    pub rejected: &'a [RowError],
    /// Whether, and how, the run ends with it.
    pub end: Option<End>,
}

/// How a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Every row is settled.
    Finished,
    /// It is to be gone on with.
    Stopped,
}

/// What a new entry says, or an earlier one: which of these holds for a run with these contents.
pub(super) fn begun(upload: Upload, contents: &Contents) -> Option<Begun> {
    if let Some(difference) = contents.difference(&upload.contents) {
        Some(Begun::Other(difference))
    } else if upload.finished_at.is_some() {
        Some(Begun::Finished(Box::new(upload)))
    } else if upload.busy_for.is_some() {
        Some(Begun::Busy(Box::new(upload)))
    } else {
        None
    }
}
