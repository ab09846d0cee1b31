//! Rows taken from the file on a thread of their own, in chunks, while others are published.

use tokio::sync::mpsc;

use crate::batch::{FileError, Row, RowError, RowOutcome};
use crate::domain::Job;

use super::counts::Counts;

/// Rows that may be on their way to the broker and not yet noted as confirmed.
pub const WINDOW: usize = 2_000;
/// How many chunks the window is divided into; each is published and confirmed as a whole.
pub(super) const CHUNKS: usize = 4;
/// A chunk of long messages ends earlier, so that a window of them does not fill the memory.
const LARGEST_CHUNK: usize = 1024 * 1024;

/// Some rows of the file, in order.
#[derive(Debug, Default)]
pub struct Chunk {
    /// The jobs to queue.
    pub jobs: Vec<Job>,
    /// The rows that are no jobs, where nobody has been told of them before.
    pub rejected: Vec<RowError>,
    /// What became of the rows that are not queued.
    pub counts: Counts,
    /// The line on which the last row begins; 0 when there is none.
    pub last_line: u64,
    /// The offset of the first byte after them.
    pub end: u64,
    /// What comes after the last chunk.
    pub after: Option<After>,
    rows: usize,
    bytes: usize,
}

/// Why no chunk follows.
#[derive(Debug, PartialEq, Eq)]
pub enum After {
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

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use jiff::Timestamp;

    use super::*;
    use crate::batch::{Batch, BatchFile, BatchId, RowOptions};
    use crate::domain::{AccountId, Channel, Origin};

    fn chunks_of(text: &str, done: u64) -> Vec<Chunk> {
        let batch = Batch {
            account: AccountId::parse("acme").unwrap(),
            channel: Some(Channel::Sms),
            origin: Origin::Campaign,
            id: BatchId::parse("spring").unwrap(),
            priority: None,
            defaults: Vec::new(),
            default_region: None,
        };
        let file = BatchFile::spool(text.as_bytes(), None).unwrap();
        let rows = file.rows(&batch, RowOptions::default(), Timestamp::UNIX_EPOCH);
        let (sender, mut receiver) = mpsc::channel(1_000);
        read(rows.unwrap(), done, &sender);
        std::iter::from_fn(|| receiver.try_recv().ok()).collect()
    }

    fn rows(count: u32, body: &str) -> String {
        let mut rows = String::new();
        for number in 0..count {
            let to = 900_000 + number;
            writeln!(rows, r#"{{"to":"+447700{to}","body":"{body}"}}"#).unwrap();
        }
        rows
    }

    #[test]
    fn a_chunk_is_a_part_of_the_window() {
        let chunks = chunks_of(&rows(1_200, "x"), 0);
        let jobs: Vec<_> = chunks.iter().map(|chunk| chunk.jobs.len()).collect();
        let lines: Vec<_> = chunks.iter().map(|chunk| chunk.last_line).collect();
        let last: Vec<_> = chunks.iter().map(|chunk| chunk.after.is_some()).collect();
        assert_eq!(jobs, [500, 500, 200]);
        assert_eq!(lines, [500, 1_000, 1_200]);
        assert_eq!(last, [false, false, true]);
    }

    #[test]
    fn long_messages_end_a_chunk_earlier() {
        let chunks = chunks_of(&rows(40, &"x".repeat(100_000)), 0);
        let jobs: Vec<_> = chunks.iter().map(|chunk| chunk.jobs.len()).collect();
        assert_eq!(jobs, [11, 11, 11, 7]);
    }

    #[test]
    fn rows_that_an_earlier_run_has_finished_are_only_counted() {
        let text = format!("{{}}\n{}{{}}\n", rows(1, "x").repeat(2) + &rows(3, "x"));
        let chunks = chunks_of(&text, 4);
        let [chunk] = &chunks[..] else {
            panic!("one chunk: {chunks:?}")
        };
        let expected = Counts {
            already_queued: 1,
            duplicates: 2,
            rejected: 2,
            ..Counts::default()
        };
        assert_eq!(chunk.counts, expected);
        let ids: Vec<_> = chunk.jobs.iter().map(|job| job.head.id.as_str()).collect();
        assert_eq!(ids, ["spring-5", "spring-6"]);
        let rejected: Vec<_> = chunk.rejected.iter().map(|error| error.line).collect();
        assert_eq!(rejected, [7]);
    }
}
