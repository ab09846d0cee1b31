//! The rows of an upload on their way into the queues, and the notes of how far they have come.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use jiff::Timestamp;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;

use crate::accounts::keys::KeyId;
use crate::api::app::App;
use crate::api::places;
use crate::backoff::Retry;
use crate::batch::{Batch, BatchFile, FileError, RowError, RowOptions};
use crate::dispatch::ports::RecordsError;
use crate::domain::AccountId;
use crate::enqueueing::{After, Counts, Done, Mark, Start, published};
use crate::uploads::{
    Begun, Contents, Difference, End, Lease, MOST_REJECTIONS, Note, Place, Upload,
};

/// How often a run shows that it is alive, also while nothing comes of it.
const BEAT: Duration = Duration::from_secs(2);

/// How long the database may take no note before the rest is given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// The longest pause before a note is tried again.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// An upload that was received as a whole.
pub(super) struct Run {
    pub(super) app: Arc<App>,
    /// The key that it came with.
    pub(super) key: KeyId,
    pub(super) batch: Batch,
    pub(super) rows: RowOptions,
    pub(super) file: BatchFile,
    pub(super) contents: Contents,
    pub(super) place: places::Place<AccountId>,
}

/// What came of a run.
#[derive(Debug)]
pub(super) enum Ran {
    /// Every row is settled; the run before this one had stored so many.
    Finished { mark: Mark, already_queued: u64 },
    /// It ended before the rows did.
    Stopped { mark: Mark, why: Why },
    /// All had been settled before.
    Before(Box<Upload>),
    /// Another run is at it.
    Busy(Box<Upload>),
    /// The batch has other contents.
    Other(Difference),
}

/// Why a run ended before its rows.
#[derive(Debug)]
pub(super) enum Why {
    /// The broker did not take some rows for too long.
    Broker(String),
    /// The temporary file cannot be read on.
    File(String),
    /// The database takes no notes.
    Records(RecordsError),
    /// Another run has taken the batch over.
    TakenOver,
    /// The key is valid no longer.
    Revoked,
    /// The server stops.
    Stopping,
}

impl Why {
    /// Why some rows are not stored. A server that stops has given the broker no more time, whatever
    /// kept it from taking them.
    fn of_shortfall(reason: String, is_stopping: bool) -> Self {
        if is_stopping {
            Self::Stopping
        } else {
            Self::Broker(reason)
        }
    }
}

/// Why a run did not begin.
#[derive(Debug)]
pub(super) enum NoRun {
    File(FileError),
    Records(RecordsError),
}

impl Run {
    /// Takes every row to the broker that an earlier run has not, however long its client waits.
    ///
    /// # Errors
    /// When it did not begin: nothing was queued.
    pub(super) async fn run(self) -> Result<Ran, NoRun> {
        let place = Place {
            account: &self.batch.account,
            batch: &self.batch.id,
            lease: Lease::new(),
        };
        let uploads = &self.app.batches.uploads;
        let now = whole_millis(self.app.clock.now());
        let start = match uploads.begin(&place, &self.contents, now).await {
            Ok(Begun::Queue(start)) => start,
            Ok(Begun::Finished(upload)) => return Ok(Ran::Before(upload)),
            Ok(Begun::Busy(upload)) => return Ok(Ran::Busy(upload)),
            Ok(Begun::Other(difference)) => return Ok(Ran::Other(difference)),
            Err(error) => return Err(NoRun::Records(error)),
        };
        let ran = Transfer::new(&self, place, start).run().await;
        drop(self.place);
        ran
    }
}

/// As precise as it is kept: a later run writes the same into its jobs.
fn whole_millis(instant: Timestamp) -> Timestamp {
    Timestamp::from_millisecond(instant.as_millisecond()).unwrap_or(instant)
}

/// One pass over the rows.
struct Transfer<'a> {
    run: &'a Run,
    place: Place<'a>,
    start: Start,
    /// Up to where everything is noted.
    mark: Mark,
    /// What became of the rows that this pass has seen.
    counts: Counts,
    why: Option<Why>,
    enough: CancellationToken,
}

impl<'a> Transfer<'a> {
    fn new(run: &'a Run, place: Place<'a>, start: Start) -> Self {
        Self {
            run,
            place,
            start,
            mark: start.mark,
            counts: Counts::default(),
            why: None,
            enough: run.app.stop.child_token(),
        }
    }

    async fn run(mut self) -> Result<Ran, NoRun> {
        let Run {
            file, batch, rows, ..
        } = self.run;
        let rows = match file.rows(batch, *rows, self.start.enqueued_at) {
            Ok(rows) => rows,
            Err(error) => {
                self.end(End::Stopped).await;
                return Err(NoRun::File(error));
            }
        };
        let (outlet, enough) = (&self.run.app.batches.outlet, self.enough.clone());
        let mut published = pin!(published(rows, self.start.mark.line, Some(outlet), &enough));
        let mut beat = interval(BEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_whole = false;
        loop {
            tokio::select! {
                done = published.next() => {
                    let Some(done) = done else { break };
                    is_whole |= done.chunk.after == Some(After::End);
                    self.take(done).await;
                }
                _ = beat.tick() => self.show_life().await,
            }
            if self.why.is_none() && !self.may_go_on() {
                self.why = Some(Why::Revoked);
            }
            if self.why.is_some() {
                enough.cancel();
            }
        }
        if !is_whole {
            self.why.get_or_insert(Why::Stopping);
        }
        Ok(self.finish().await)
    }

    /// Notes what became of a chunk. Behind the first that is not stored as a whole, those that are
    /// under way do not move the mark.
    async fn take(&mut self, done: Done) {
        let shortfall = done.shortfall();
        let chunk = done.chunk;
        let before = self.counts.rejected;
        self.counts += chunk.counts;
        if self.why.is_some() {
            return;
        }
        if let Some(reason) = shortfall {
            let is_stopping = self.run.app.stop.is_cancelled();
            self.why = Some(Why::of_shortfall(reason, is_stopping));
            return;
        }
        if chunk.last_line > self.mark.line {
            let mark = Mark {
                line: chunk.last_line,
                counts: self.counts.of_all_runs(),
            };
            self.note(mark, kept(&chunk.rejected, before), None).await;
        }
        if let Some(After::Unreadable(reason)) = chunk.after {
            self.why.get_or_insert(Why::File(reason));
        }
    }

    /// Writes a note, again and again while the database is away. That a run has stopped is tried once:
    /// it has waited for the broker already, and its lease ends by itself.
    async fn note(&mut self, mark: Mark, rejected: &[RowError], end: Option<End>) {
        let note = Note {
            mark,
            rejected,
            end,
        };
        let patience = match end {
            Some(End::Stopped) => Duration::ZERO,
            Some(End::Finished) | None => PATIENCE,
        };
        let given_up_at = Instant::now() + patience;
        let mut retry = Retry::capped(LONGEST_PAUSE);
        loop {
            let uploads = &self.run.app.batches.uploads;
            match uploads.note(&self.place, &note).await {
                Ok(true) => {
                    self.mark = mark;
                    return;
                }
                Ok(false) => {
                    self.why.get_or_insert(Why::TakenOver);
                    return;
                }
                Err(error) if Instant::now() >= given_up_at || self.run.app.stop.is_cancelled() => {
                    self.why.get_or_insert(Why::Records(error));
                    return;
                }
                Err(error) => {
                    tracing::debug!(%error, "how far a batch has come cannot be noted yet");
                }
            }
            sleep(retry.next_pause()).await;
        }
    }

    /// Renews the lease while nothing is to be noted. What fails here fails again with the next note.
    async fn show_life(&mut self) {
        let note = Note {
            mark: self.mark,
            rejected: &[],
            end: None,
        };
        let renewed = self.run.app.batches.uploads.note(&self.place, &note).await;
        if matches!(renewed, Ok(false)) {
            self.why.get_or_insert(Why::TakenOver);
        }
    }

    /// A key that is revoked ends what came with it.
    fn may_go_on(&self) -> bool {
        let ring = self.run.app.keys.ring();
        ring.is_none_or(|ring| ring.is_valid(self.run.key))
    }

    async fn finish(mut self) -> Ran {
        let end = if self.why.is_none() {
            End::Finished
        } else {
            End::Stopped
        };
        self.end(end).await;
        let head = (&self.place.account, self.place.batch.as_str());
        let Counts {
            queued,
            duplicates,
            rejected,
            ..
        } = self.mark.counts;
        match self.why {
            None => {
                tracing::info!(account = %head.0, batch = head.1, queued, duplicates, rejected, "a batch is queued");
                Ran::Finished {
                    mark: self.mark,
                    already_queued: self.counts.already_queued,
                }
            }
            Some(why) => {
                let line = self.mark.line;
                tracing::warn!(account = %head.0, batch = head.1, queued, line, ?why, "a batch is queued in part");
                Ran::Stopped {
                    mark: self.mark,
                    why,
                }
            }
        }
    }

    /// Gives the lease back. Where that cannot be written it ends by itself.
    async fn end(&mut self, end: End) {
        if !matches!(self.why, Some(Why::TakenOver | Why::Records(_))) {
            self.note(self.mark, &[], Some(end)).await;
        }
    }
}

/// Those of some rejected rows that are kept, where so many came before them.
fn kept(rejected: &[RowError], before: u64) -> &[RowError] {
    let room = MOST_REJECTIONS.saturating_sub(before);
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    &rejected[..rejected.len().min(room)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_stops_does_not_blame_the_broker() {
        let why = |is_stopping| Why::of_shortfall("no confirm".to_owned(), is_stopping);
        assert!(matches!(why(true), Why::Stopping));
        assert!(matches!(why(false), Why::Broker(reason) if reason == "no confirm"));
    }
}
