//! The ledger's entries, and what happens to them while it does not keep up.
//!
//! A job that was sent, and a transactional one whatever its end, does not wait for the ledger: its
//! entry is kept here, in a buffer with a bound. Were a job that was sent left unacknowledged, the
//! broker would deliver it again when its claim has long been forgotten and no entry tells of it.
//! The other marketing jobs stay unacknowledged until their entries are written, and their lane
//! takes no jobs meanwhile.

use std::collections::VecDeque;
use std::iter::zip;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::gaps::Gaps;
use super::ports::{Ended, Gap, Receipt, Records, RecordsError};
use crate::activity::Count;
use crate::domain::{Lane, Outcome};
use crate::telemetry::Telemetry;

/// How long writing may take before the ledger counts as not keeping up.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long after a failure the next try is made.
const TRY_AGAIN: Duration = Duration::from_secs(1);
/// Entries that are kept for the ledger's return.
const BUFFER: usize = 50_000;
/// Entries that are written in one go.
const BATCH: usize = 1024;

/// The ledger as the settling stage sees it.
pub(super) struct Books<R> {
    records: Arc<R>,
    telemetry: Telemetry,
    /// Entries of acknowledged jobs.
    buffer: VecDeque<Ended>,
    /// Entries of jobs that are not acknowledged before they are written.
    unwritten: VecDeque<Ended>,
    /// The receipts of those jobs, in the same order.
    receipts: VecDeque<Receipt>,
    /// When the next try is due, while the ledger does not keep up.
    behind: Option<Instant>,
    /// What will never be written.
    gaps: Gaps,
}

impl<R: Records> Books<R> {
    /// Books that keep up.
    pub fn new(records: Arc<R>, telemetry: Telemetry) -> Self {
        Self {
            records,
            telemetry,
            buffer: VecDeque::new(),
            unwritten: VecDeque::new(),
            receipts: VecDeque::new(),
            behind: None,
            gaps: Gaps::new(),
        }
    }

    /// Whether the ledger keeps up.
    pub fn keep_up(&self) -> bool {
        self.behind.is_none()
    }

    /// When to try again what could not be written, or to note what never will be.
    pub fn next_try(&self) -> Option<Instant> {
        self.behind.or_else(|| self.gaps.due())
    }

    /// How many entries wait for the ledger.
    pub fn left(&self) -> usize {
        self.buffer.len() + self.unwritten.len()
    }

    /// Enters jobs; false when they are not written. While earlier ones wait, nothing is tried.
    pub async fn write(&mut self, ended: &[Ended]) -> bool {
        if !self.records.exist() {
            return true;
        }
        self.keep_up() && {
            let written = write_what_fits(&*self.records, ended).await;
            self.note(written)
        }
    }

    /// Keeps what could not be written, and says which jobs may be acknowledged all the same.
    pub fn put_off(&mut self, receipts: Vec<Receipt>, ended: Vec<Ended>) -> Vec<Receipt> {
        let mut done = Vec::new();
        for (receipt, ended) in zip(receipts, ended) {
            let has_room = self.buffer.len() < BUFFER;
            let was_sent = ended.outcome == Outcome::Dispatched;
            if ended.head.lane == Lane::Transactional || (was_sent && has_room) {
                count(&self.telemetry, &ended);
                done.push(receipt);
                if has_room {
                    self.buffer.push_back(ended);
                } else {
                    self.telemetry.ledger_lost(1);
                    self.gaps.add(&Gap::of(&ended));
                }
            } else {
                self.unwritten.push_back(ended);
                self.receipts.push_back(receipt);
            }
        }
        self.tell();
        done
    }

    /// Tries again, with one batch, so that new ends need not wait for all the old ones. Says which
    /// jobs may be acknowledged now; the next try is due at once while more is left. Once the ledger
    /// takes something it is told, too, what it will never have.
    pub async fn catch_up(&mut self) -> Vec<Receipt> {
        let done = if self.left() > 0 {
            self.write_more().await
        } else {
            Vec::new()
        };
        let is_due = self.gaps.due().is_some_and(|due| due <= Instant::now());
        if is_due && self.takes_entries() {
            self.note_gaps().await;
        }
        done
    }

    /// Whether the last try has come to something.
    fn takes_entries(&self) -> bool {
        self.behind.is_none_or(|next| next <= Instant::now())
    }

    async fn note_gaps(&mut self) {
        let gaps = self.gaps.take();
        let noting = timeout(PATIENCE, self.records.note_gaps(&gaps)).await;
        if !matches!(noting, Ok(Ok(()))) {
            self.gaps.put_back(&gaps);
        }
    }

    async fn write_more(&mut self) -> Vec<Receipt> {
        let of_acknowledged = !self.buffer.is_empty();
        let waiting = if of_acknowledged {
            &self.buffer
        } else {
            &self.unwritten
        };
        let (batch, _) = waiting.as_slices();
        let batch = &batch[..batch.len().min(BATCH)];
        let size = batch.len();
        let written = write_what_fits(&*self.records, batch).await;
        if !self.note(written) {
            return Vec::new();
        }
        let done = if of_acknowledged {
            self.buffer.drain(..size);
            Vec::new()
        } else {
            for ended in self.unwritten.drain(..size) {
                count(&self.telemetry, &ended);
            }
            self.receipts.drain(..size).collect()
        };
        self.behind = (self.left() > 0).then(Instant::now);
        self.tell();
        done
    }

    /// The end: what is still here is lost to the ledger, which is told so if it hears anything.
    /// Jobs that are not acknowledged come again elsewhere, and are entered then.
    pub async fn close(mut self) {
        if !self.buffer.is_empty() {
            self.telemetry.ledger_lost(self.buffer.len() as u64);
        }
        for ended in std::mem::take(&mut self.buffer) {
            self.gaps.add(&Gap::of(&ended));
        }
        if self.gaps.due().is_some() {
            self.note_gaps().await;
        }
    }

    /// What a try has come to: whether it is done.
    fn note(&mut self, written: Option<Vec<Gap>>) -> bool {
        let Some(unfit) = written else {
            self.behind = Some(Instant::now() + TRY_AGAIN);
            return false;
        };
        if !unfit.is_empty() {
            self.telemetry.ledger_refused(unfit.len() as u64);
        }
        for gap in unfit {
            self.gaps.add(&gap);
        }
        true
    }

    fn tell(&self) {
        self.telemetry.ledger(self.keep_up(), self.left());
    }
}

/// Writes entries. One that the database cannot take must not keep out those beside it, now and in
/// each later try: whatever does not fit is looked for in halves and left out. Gives a gap for
/// each of these; nothing when the ledger does not keep up.
async fn write_what_fits<R: Records>(records: &R, ended: &[Ended]) -> Option<Vec<Gap>> {
    let mut unfit = Vec::new();
    let mut parts = vec![ended];
    while let Some(part) = parts.pop() {
        match timeout(PATIENCE, records.write(part)).await {
            Ok(Ok(())) => {}
            Ok(Err(RecordsError::Unfit)) if part.len() > 1 => {
                let (first, second) = part.split_at(part.len() / 2);
                parts.extend([second, first]);
            }
            Ok(Err(RecordsError::Unfit)) => unfit.extend(part.iter().map(Gap::of)),
            Ok(Err(_)) | Err(_) => return None,
        }
    }
    Some(unfit)
}

/// Counts the end of a job, once.
pub(super) fn count(telemetry: &Telemetry, ended: &Ended) {
    if !ended.repeated {
        telemetry.settled(ended.head.lane, ended.outcome);
        if let Some(what) = Count::of_end(ended.outcome) {
            let head = &ended.head;
            telemetry.tally().add(&head.account, head.lane, what, 1);
        }
    }
}

#[cfg(test)]
mod tests;
