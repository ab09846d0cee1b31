//! Rows taken from the file on a thread of their own, in chunks, while others are published.

use tokio::sync::mpsc;

use crate::batch::{FileError, Row, RowError, RowOutcome};
use crate::domain::Job;

use super::counts::Counts;

/// Rows that may be on their way to the broker and not yet noted as confirmed.
const WINDOW: usize = 2_000;
/// How many chunks the window is divided into; each is published and confirmed as a whole.
pub(super) const CHUNKS: usize = 4;
/// A chunk of long messages ends earlier, so that a window of them does not fill the memory.
const LARGEST_CHUNK: usize = 1024 * 1024;

/// Some rows of the file, in order.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    /// The jobs to queue.
    pub(super) jobs: Vec<Job>,
    /// The rows that are no jobs, where nobody has been told of them before.
    pub(super) rejected: Vec<RowError>,
    /// What became of the rows that are not queued.
    pub(super) counts: Counts,
    /// The line on which the last row begins; 0 when there is none.
    pub(super) last_line: u64,
    /// The offset of the first byte after them.
    pub(super) end: u64,
    /// What comes after the last chunk.
    pub(super) after: Option<After>,
    rows: usize,
    bytes: usize,
}

/// Why no chunk follows.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum After {
    /// The file has ended.
    End,
    /// It cannot be read on.
    Unreadable(String),
}

impl Chunk {
    fn is_full(&self) -> bool {
        self.rows >= WINDOW / CHUNKS || self.bytes >= LARGEST_CHUNK
    }

    fn add(&mut self, row: Row, is_done_already: bool) {
        self.rows += 1;
        self.last_line = row.line;
        self.end = row.end;
        match row.outcome {
            RowOutcome::Job(_) if is_done_already => self.counts.already_queued += 1,
            RowOutcome::Job(job) => {
                self.bytes += job.payload.as_bytes().len();
                self.jobs.push(*job);
            }
            RowOutcome::Duplicate => self.counts.duplicates += 1,
            RowOutcome::Rejected(error) => {
                self.counts.rejected += 1;
                if !is_done_already {
                    self.rejected.push(error);
                }
            }
        }
    }
}

/// Reads all rows, or until nobody takes them any more. Rows up to the line `done` were queued and
/// reported by an earlier run; they are only counted.
pub(super) fn read(
    rows: impl Iterator<Item = Result<Row, FileError>>,
    done: u64,
    chunks: &mpsc::Sender<Chunk>,
) {
    let mut chunk = Chunk::default();
    let mut after = After::End;
    for row in rows {
        match row {
            Ok(row) => {
                let is_done_already = row.line <= done;
                chunk.add(row, is_done_already);
            }
            Err(error) => {
                after = After::Unreadable(error.to_string());
                break;
            }
        }
        if chunk.is_full() && chunks.blocking_send(std::mem::take(&mut chunk)).is_err() {
            return;
        }
    }
    chunk.after = Some(after);
    // Nobody takes it after the run was stopped.
    let _ = chunks.blocking_send(chunk);
}
