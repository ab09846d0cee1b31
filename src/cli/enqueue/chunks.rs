//! The rows of a file, a chunk at a time: read, made into jobs, published.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use crate::batch::{Row, RowError, RowOutcome, Rows};
use crate::dispatch::ports::PublishError;
use crate::domain::Job;
use crate::intake::Feed;

/// Publishes that may be unconfirmed at a time.
const WINDOW: usize = 2_000;
/// How many chunks the window is divided into; each is published and confirmed as a whole.
pub(super) const CHUNKS: usize = 4;
/// How long the broker may take nothing before the rest is given up.
const PATIENCE: Duration = Duration::from_secs(30);
/// The pause before a chunk is tried again.
const PAUSE: Duration = Duration::from_millis(500);

/// Rows of the input, or why there are no more.
pub(super) type Lines = Result<Vec<Row>, String>;

/// Reads the input to its end, or until nobody takes its rows any more.
pub(super) fn read_rows(mut rows: Rows, chunks: &mpsc::Sender<Lines>) {
    loop {
        let chunk: Result<Vec<_>, _> = rows.by_ref().take(WINDOW / CHUNKS).collect();
        let last = !matches!(&chunk, Ok(rows) if !rows.is_empty());
        let sent = chunks.blocking_send(chunk.map_err(|error| error.to_string()));
        if last || sent.is_err() {
            return;
        }
    }
}

/// Some rows, read.
#[derive(Default)]
pub(super) struct Chunk {
    jobs: Vec<Job>,
    pub(super) rejected: Vec<RowError>,
    pub(super) last_line: u64,
    /// Why there is nothing after these rows, although the input has not ended.
    pub(super) unreadable: Option<String>,
}

/// A chunk that was published as far as possible.
pub(super) struct Done {
    pub(super) chunk: Chunk,
    pub(super) queued: u64,
    /// Why the rest of it was given up.
    pub(super) failed: Option<PublishError>,
}

impl Chunk {
    /// Sorts some rows.
    pub(super) fn of(lines: Lines) -> Self {
        let mut chunk = Self::default();
        let rows = lines.unwrap_or_else(|reason| {
            chunk.unreadable = Some(reason);
            Vec::new()
        });
        for row in rows {
            chunk.last_line = row.line;
            match row.outcome {
                RowOutcome::Job(job) => chunk.jobs.push(*job),
                RowOutcome::Rejected(error) => chunk.rejected.push(error),
                RowOutcome::Duplicate => {}
            }
        }
        chunk
    }
}

/// Publishes a chunk, and what was not stored again, until the broker has taken nothing for too
/// long. What is published twice has the same id.
pub(super) async fn publish(feed: &Feed, mut chunk: Chunk) -> Done {
    let mut jobs = std::mem::take(&mut chunk.jobs);
    let total = jobs.len();
    let mut progress = Instant::now();
    let mut failed = None;
    while !jobs.is_empty() {
        let results = feed.publish(&jobs).await;
        let before = jobs.len();
        let mut results = results.into_iter();
        failed = None;
        jobs.retain(|_| match results.next() {
            Some(Ok(())) => false,
            Some(Err(error)) => {
                failed = Some(error);
                true
            }
            None => true,
        });
        if jobs.len() < before {
            progress = Instant::now();
        } else if progress.elapsed() >= PATIENCE {
            break;
        }
        if !jobs.is_empty() {
            sleep(PAUSE).await;
        }
    }
    Done {
        chunk,
        queued: (total - jobs.len()) as u64,
        failed,
    }
}
