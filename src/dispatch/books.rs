//! The ledger's entries, and what happens to them while it does not keep up.
//!
//! A marketing job stays unacknowledged until its entry is written; the lane stops taking jobs
//! meanwhile. A transactional job does not wait: its entry is kept here, in a buffer with a bound,
//! and what finds no room there is lost to the ledger and counted.

use std::collections::VecDeque;
use std::iter::zip;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::ports::{Ended, Receipt, Records};
use super::settle::Settlement;
use crate::domain::Lane;
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
    /// Jobs that are not acknowledged before they are entered.
    unwritten: VecDeque<Settlement>,
    /// When the next try is due, while the ledger does not keep up.
    behind: Option<Instant>,
}

impl<R: Records> Books<R> {
    /// Books that keep up.
    pub fn new(records: Arc<R>, telemetry: Telemetry) -> Self {
        Self {
            records,
            telemetry,
            buffer: VecDeque::new(),
            unwritten: VecDeque::new(),
            behind: None,
        }
    }

    /// Whether the ledger keeps up.
    pub fn keep_up(&self) -> bool {
        self.behind.is_none()
    }

    /// When to try again what could not be written.
    pub fn next_try(&self) -> Option<Instant> {
        self.behind
    }

    /// Enters jobs; false when they are not written. While earlier ones wait, nothing is tried.
    pub async fn write(&mut self, ended: &[Ended]) -> bool {
        if !self.records.exist() {
            return true;
        }
        self.keep_up() && self.try_to_write(ended).await
    }

    /// Keeps what could not be written, and says which jobs may be acknowledged all the same.
    pub fn put_off(&mut self, receipts: Vec<Receipt>, ended: Vec<Ended>) -> Vec<Settlement> {
        let mut done = Vec::new();
        for (receipt, ended) in zip(receipts, ended) {
            if ended.head.lane == Lane::Transactional {
                self.buffer(ended.clone());
                done.push(Settlement { receipt, ended });
            } else {
                self.unwritten.push_back(Settlement { receipt, ended });
            }
        }
        self.tell();
        done
    }

    /// Tries again, and says which jobs may be acknowledged now.
    pub async fn catch_up(&mut self) -> Vec<Settlement> {
        let mut done = Vec::new();
        while !self.buffer.is_empty() {
            let count = self.buffer.len().min(BATCH);
            let batch: Vec<Ended> = self.buffer.drain(..count).collect();
            if !self.try_to_write(&batch).await {
                batch
                    .into_iter()
                    .rev()
                    .for_each(|one| self.buffer.push_front(one));
                return done;
            }
            self.tell();
        }
        while !self.unwritten.is_empty() {
            let count = self.unwritten.len().min(BATCH);
            let batch: Vec<Settlement> = self.unwritten.drain(..count).collect();
            let ended: Vec<Ended> = batch.iter().map(|one| one.ended.clone()).collect();
            if !self.try_to_write(&ended).await {
                batch
                    .into_iter()
                    .rev()
                    .for_each(|one| self.unwritten.push_front(one));
                return done;
            }
            done.extend(batch);
        }
        self.behind = None;
        self.tell();
        done
    }

    /// The end: what is still here is lost to the ledger. Jobs that are not acknowledged come again
    /// elsewhere, and are entered then.
    pub fn close(self) {
        if !self.buffer.is_empty() {
            self.telemetry.ledger_lost(self.buffer.len() as u64);
        }
    }

    async fn try_to_write(&mut self, ended: &[Ended]) -> bool {
        let written = matches!(
            timeout(PATIENCE, self.records.write(ended)).await,
            Ok(Ok(()))
        );
        if !written {
            self.behind = Some(Instant::now() + TRY_AGAIN);
        }
        written
    }

    fn buffer(&mut self, ended: Ended) {
        if self.buffer.len() < BUFFER {
            self.buffer.push_back(ended);
        } else {
            self.telemetry.ledger_lost(1);
        }
    }

    fn tell(&self) {
        self.telemetry
            .ledger(self.keep_up(), self.buffer.len() + self.unwritten.len());
    }
}
