//! The way of all rows from the file to the broker.

use std::fmt;
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::batch::{RowError, Rows};
use crate::cli::progress::Progress;
use crate::cli::stop::{Signal, Stop};
use crate::enqueueing::{After, Counts, Done, published};
use crate::intake::Feed;

use super::keeper::Keeper;

/// Why a run ended before its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stopped {
    /// The broker did not take some rows for too long.
    Broker(String),
    /// The file cannot be read on.
    File(String),
    /// The state cannot be written: the run could not be resumed from where it is.
    State(String),
    /// Somebody asked.
    Signal(Signal),
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broker(reason) => write!(f, "stopped: {reason}, for too long"),
            Self::File(reason) | Self::State(reason) => write!(f, "stopped: {reason}"),
            Self::Signal(signal) => write!(f, "stopped by {}", signal.name()),
        }
    }
}

/// What became of the rows.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) counts: Counts,
    /// Up to the row that begins on this line every good row is stored.
    pub(super) complete_to_line: u64,
    /// The first rejected rows, as many as may be shown.
    pub(super) rejected: Vec<RowError>,
    /// Rejected rows that may be told, shown or not.
    pub(super) told: u64,
    /// The ids of the first and the last job.
    pub(super) ids: Option<(String, String)>,
    pub(super) stopped: Option<Stopped>,
    pub(super) took: Duration,
}

/// How rejected rows are told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Errors {
    /// The most that are shown.
    pub(super) most: usize,
    /// Whether they are written as they come, and not only kept.
    pub(super) written: bool,
}

/// One pass over the rows.
pub(super) struct Transfer<'a> {
    /// Where they go; nowhere when they are only checked.
    pub(super) feed: Option<&'a Feed>,
    /// Where it is noted how far they have come.
    pub(super) keeper: Option<Keeper<'a>>,
    pub(super) stop: &'a Stop,
    pub(super) progress: Progress,
    pub(super) errors: Errors,
}

impl Transfer<'_> {
    /// Takes every row after the line `done` to the broker, and notes how far it has come.
    pub(super) async fn run(mut self, rows: Rows, done: u64) -> Outcome {
        let started = Instant::now();
        let hard = self.stop.stages.hard.clone();
        let enough = self.stop.stages.soft.child_token();
        let mut published = pin!(published(rows, done, self.feed, &enough));
        let mut outcome = Outcome {
            complete_to_line: done,
            ..Outcome::default()
        };
        let mut is_whole = false;
        loop {
            let done = tokio::select! {
                biased;
                () = hard.cancelled() => break,
                done = published.next() => done,
            };
            let Some(done) = done else { break };
            is_whole |= done.chunk.after == Some(After::End);
            self.take(done, &mut outcome, &enough);
        }
        if let Some(signal) = self.stop.signal()
            && (!is_whole || outcome.counts.not_queued > 0)
        {
            outcome.stopped = Some(Stopped::Signal(signal));
        }
        self.end(&mut outcome);
        outcome.took = started.elapsed();
        outcome
    }

    /// Notes what became of a chunk. After the first that is not stored as a whole, no further one is
    /// begun, and those that are under way do not move the mark.
    fn take(&mut self, done: Done, outcome: &mut Outcome, enough: &CancellationToken) {
        let shortfall = done.shortfall();
        let Done { chunk, ids, .. } = done;
        outcome.counts += chunk.counts;
        outcome.tell(chunk.rejected, self.errors, &self.progress);
        if let Some((first, last)) = ids {
            let first = outcome.ids.take().map_or(first, |(first, _)| first);
            outcome.ids = Some((first, last));
        }
        self.progress.advance(outcome.counts.rows(), chunk.end);
        if outcome.stopped.is_none() {
            outcome.stopped = match shortfall {
                Some(reason) => Some(Stopped::Broker(reason)),
                None => self.note(chunk.last_line, outcome),
            };
        }
        if let Some(After::Unreadable(reason)) = chunk.after {
            outcome.stopped.get_or_insert(Stopped::File(reason));
        }
        if outcome.stopped.is_some() {
            enough.cancel();
        }
    }

    fn note(&mut self, line: u64, outcome: &mut Outcome) -> Option<Stopped> {
        // An earlier run has noted the lines before its mark.
        if line <= outcome.complete_to_line {
            return None;
        }
        outcome.complete_to_line = line;
        let keeper = self.keeper.as_mut()?;
        let noted = keeper.note(line, outcome.counts);
        noted.err().map(|error| Stopped::State(error.to_string()))
    }

    /// Writes the last state.
    fn end(&mut self, outcome: &mut Outcome) {
        let Some(keeper) = &mut self.keeper else {
            return;
        };
        if let Err(error) = keeper.end(outcome.stopped.is_none()) {
            let error = Stopped::State(error.to_string());
            outcome.stopped.get_or_insert(error);
        }
    }
}

impl Outcome {
    fn tell(&mut self, rejected: Vec<RowError>, errors: Errors, progress: &Progress) {
        self.told += rejected.len() as u64;
        for error in rejected {
            if self.rejected.len() >= errors.most {
                break;
            }
            if errors.written {
                progress.say(&error);
            }
            self.rejected.push(error);
        }
    }

    /// Rejected rows beyond those shown.
    pub(super) fn not_shown(&self) -> u64 {
        self.told - self.rejected.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enqueueing::Chunk;

    fn done(last_line: u64, queued: u64, not_queued: u64) -> Done {
        let counts = Counts {
            queued,
            not_queued,
            ..Counts::default()
        };
        let mut chunk = Chunk::default();
        (chunk.counts, chunk.last_line) = (counts, last_line);
        Done {
            chunk,
            ids: None,
            failed: None,
        }
    }

    #[tokio::test]
    async fn the_mark_stays_before_rows_of_which_nothing_is_known() {
        let stop = Stop::never();
        let mut transfer = Transfer {
            feed: None,
            keeper: None,
            stop: &stop,
            progress: Progress::new("queueing", 1, false),
            errors: Errors {
                most: 0,
                written: false,
            },
        };
        let (mut outcome, enough) = (Outcome::default(), CancellationToken::new());
        transfer.take(done(500, 500, 0), &mut outcome, &enough);
        assert_eq!(
            (outcome.complete_to_line, enough.is_cancelled()),
            (500, false)
        );
        transfer.take(done(1_000, 499, 1), &mut outcome, &enough);
        transfer.take(done(1_500, 500, 0), &mut outcome, &enough);
        assert_eq!(
            (outcome.complete_to_line, enough.is_cancelled()),
            (500, true)
        );
        assert!(matches!(outcome.stopped, Some(Stopped::Broker(_))));
        assert_eq!(outcome.counts.not_queued, 1);
    }
}
