//! The rows of a file, a chunk at a time: read, made into jobs, published.

use std::io::{BufRead, BufReader, Read};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use crate::dispatch::ports::PublishError;
use crate::domain::Job;
use crate::intake::Feed;

use super::rows::{Batch, RowError};

/// Publishes that may be unconfirmed at a time.
const WINDOW: usize = 2_000;
/// How many chunks the window is divided into; each is published and confirmed as a whole.
pub(super) const CHUNKS: usize = 4;
/// A line longer than this is not read to its end.
const LONGEST_LINE: u64 = 1024 * 1024;
/// How long the broker may take nothing before the rest is given up.
const PATIENCE: Duration = Duration::from_secs(30);
/// The pause before a chunk is tried again.
const PAUSE: Duration = Duration::from_millis(500);

/// Lines of the input, numbered, or why there are no more.
pub(super) type Lines = Result<Vec<(u64, Vec<u8>)>, String>;

/// Reads the input to its end, or until nobody takes its lines any more.
pub(super) fn read_lines(input: Box<dyn Read + Send>, chunks: &mpsc::Sender<Lines>) {
    let mut input = BufReader::new(input);
    let mut chunk = Vec::new();
    let mut number = 0;
    let end = loop {
        let mut line = Vec::new();
        number += 1;
        match (&mut input).take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(0) => break None,
            Ok(_) if line.len() as u64 == LONGEST_LINE => {
                break Some(format!("line {number} is longer than {LONGEST_LINE} bytes"));
            }
            Ok(_) => chunk.push((number, line)),
            Err(error) => break Some(format!("cannot read on: {error}")),
        }
        if chunk.len() >= WINDOW / CHUNKS {
            let full = std::mem::take(&mut chunk);
            if chunks.blocking_send(Ok(full)).is_err() {
                return;
            }
        }
    };
    let last = [Some(Ok(chunk)), end.map(Err)];
    for lines in last.into_iter().flatten() {
        // Nobody takes them after the batch was stopped.
        let _ = chunks.blocking_send(lines);
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
    /// Makes jobs of some lines.
    pub(super) fn of(batch: &Batch, lines: Lines, now: Timestamp) -> Self {
        let mut chunk = Self::default();
        let lines = lines.unwrap_or_else(|reason| {
            chunk.unreadable = Some(reason);
            Vec::new()
        });
        for (number, line) in lines {
            chunk.last_line = number;
            let text = trim(&line, number);
            if text.is_empty() {
                continue;
            }
            match batch.job(number, text, now) {
                Ok(job) => chunk.jobs.push(job),
                Err(error) => chunk.rejected.push(error),
            }
        }
        chunk
    }
}

/// Without surrounding blanks, and on the first line without the byte order mark that some
/// programs begin a file with.
pub(super) fn trim(line: &[u8], number: u64) -> &[u8] {
    let mark = (number == 1)
        .then(|| line.strip_prefix(b"\xef\xbb\xbf"))
        .flatten();
    mark.unwrap_or(line).trim_ascii()
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
