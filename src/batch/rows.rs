//! A file's rows, each made into a job or rejected.

use std::sync::Arc;

use jiff::Timestamp;

use super::MAX_ROW;
use super::cells::{Cells, MISPLACED_QUOTE, trim};
use super::columns::Columns;
use super::error::{FileError, RowError};
use super::raw_rows::{RawRow, RawRows};
use super::seen::Seen;
use super::shared::Batch;
use super::stamp::Stamp;
use super::template::Template;
use super::{csv, json};
use crate::domain::{Channel, Job};

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
    maker: Maker,
    /// `None` where duplicates are allowed.
    seen: Option<Seen>,
    /// The file as it was when it was read through.
    stamp: Stamp,
    ended: bool,
}

/// How rows are written.
pub(super) enum Notation {
    Json,
    Csv {
        columns: Arc<Columns>,
        cells: Box<Cells>,
    },
}

impl Rows {
    pub(super) fn new(
        raw: RawRows,
        notation: Notation,
        stamp: Stamp,
        batch: &Batch,
        options: RowOptions,
        now: Timestamp,
    ) -> Self {
        Self {
            raw,
            maker: Maker {
                notation,
                template: Template::new(batch, now),
                channel: batch.channel,
            },
            seen: (!options.allow_duplicates).then(Seen::new),
            stamp,
            ended: false,
        }
    }

    fn read(&mut self) -> Result<Option<Row>, FileError> {
        while let Some(raw) = self.raw.next()? {
            let (line, end) = (raw.line, raw.end);
            if let Some(job) = self.maker.job(&raw).transpose() {
                let outcome = judge(self.seen.as_mut(), job);
                return Ok(Some(Row { line, end, outcome }));
            }
        }
        self.stamp.check()?;
        Ok(None)
    }
}

/// Makes jobs of rows.
struct Maker {
    notation: Notation,
    template: Template,
    channel: Option<Channel>,
}

impl Maker {
    /// The job of a row; `None` when it is blank.
    fn job(&mut self, raw: &RawRow<'_>) -> Result<Option<Job>, RowError> {
        let Some(text) = raw.text else {
            let reason = format!("expected at most {MAX_ROW} bytes");
            return Err(RowError::row(raw.line, reason));
        };
        if trim(text).is_empty() {
            return Ok(None);
        }
        let mut draft = self.template.draft(raw.line);
        match &mut self.notation {
            Notation::Json => json::fill(&mut draft, text)?,
            Notation::Csv { columns, cells } => {
                if raw.misplaced_quote {
                    return Err(RowError::row(raw.line, MISPLACED_QUOTE));
                }
                cells.split(text);
                if cells.iter().all(|cell| trim(cell).is_empty()) {
                    return Ok(None);
                }
                csv::fill(&mut draft, columns, cells, self.channel)?;
            }
        }
        self.template.job(draft).map(Some)
    }
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
