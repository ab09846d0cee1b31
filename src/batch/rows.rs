//! A file's rows, each made into a job or rejected.

use jiff::Timestamp;

use super::MAX_ROW;
use super::error::{FileError, RowError};
use super::json;
use super::raw_rows::{RawRow, RawRows};
use super::seen::Seen;
use super::shared::Batch;
use super::template::Template;
use crate::domain::Job;

/// What is to be done with rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowOptions {
    /// Rows whose recipient was there before, on the same channel, become jobs as well.
    pub allow_duplicates: bool,
}

/// A row of a file. Blank rows are none.
#[derive(Debug)]
pub struct Row {
    /// The line where it starts, from 1.
    pub line: u64,
    /// The place in the file behind it, in bytes from the start; [`BatchFile::bytes`] at most.
    ///
    /// [`BatchFile::bytes`]: super::BatchFile::bytes
    pub end: u64,
    /// What it is.
    pub outcome: RowOutcome,
}

/// What a row is.
#[derive(Debug)]
pub enum RowOutcome {
    /// A job that a worker would send.
    Job(Box<Job>),
    /// A good row whose recipient an earlier good row has on the same channel.
    Duplicate,
    /// No job.
    Rejected(RowError),
}

/// The rows of a file, read one at a time. After an error there are no more.
pub struct Rows {
    raw: RawRows,
    template: Template,
    /// `None` where duplicates are allowed.
    seen: Option<Seen>,
    /// The file's length when it was read through.
    bytes: u64,
    ended: bool,
}

impl Rows {
    pub(super) fn new(
        raw: RawRows,
        bytes: u64,
        batch: &Batch,
        options: RowOptions,
        now: Timestamp,
    ) -> Self {
        Self {
            raw,
            template: Template::new(batch, now),
            seen: (!options.allow_duplicates).then(Seen::default),
            bytes,
            ended: false,
        }
    }

    fn read(&mut self) -> Result<Option<Row>, FileError> {
        while let Some(raw) = self.raw.next()? {
            let (line, end) = (raw.line, raw.end);
            let job = match job(&self.template, &raw) {
                None => continue,
                Some(job) => job,
            };
            let outcome = judge(self.seen.as_mut(), job);
            return Ok(Some(Row { line, end, outcome }));
        }
        if self.raw.offset() < self.bytes {
            return Err(FileError::Changed);
        }
        Ok(None)
    }
}

/// The job of a row; `None` when it is blank.
fn job(template: &Template, raw: &RawRow<'_>) -> Option<Result<Job, RowError>> {
    let Some(text) = raw.text else {
        let reason = format!("expected at most {MAX_ROW} bytes");
        return Some(Err(RowError::row(raw.line, reason)));
    };
    if text.trim().is_empty() {
        return None;
    }
    let mut draft = template.draft(raw.line);
    Some(json::fill(&mut draft, text).and_then(|()| template.job(draft)))
}

fn judge(seen: Option<&mut Seen>, job: Result<Job, RowError>) -> RowOutcome {
    match job {
        Err(error) => RowOutcome::Rejected(error),
        Ok(job) if seen.is_some_and(|seen| !seen.insert(&job)) => RowOutcome::Duplicate,
        Ok(job) => RowOutcome::Job(Box::new(job)),
    }
}

impl Iterator for Rows {
    type Item = Result<Row, FileError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let row = self.read().transpose();
        self.ended = !matches!(row, Some(Ok(_)));
        row
    }
}
