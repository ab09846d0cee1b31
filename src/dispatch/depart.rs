//! Jobs that leave without having ended: back into the queues or into the database; and messages
//! that nobody can read, into the dead queue.
//!
//! A job leaves this worker only when the broker has confirmed its copy, or the database its row. If
//! it has not, the original is kept, and whatever happens to it next is decided anew.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::in_hand::{Departure, InHand};
use super::ports::{Broker, DeadLetter, Receipt, Records, RecordsError, Route, WaitingJob};
use crate::activity::Count;
use crate::domain::{Lane, Outcome};
use crate::telemetry::Telemetry;

/// The most messages that are published in one go.
const BATCH: usize = 256;

/// No further job goes into the same statement when those before it have so many bytes: more of them
/// would take the database longer than it is given.
const STATEMENT_BYTES: usize = 2 << 20;

/// Something on its way out.
#[derive(Debug)]
pub(super) enum Departing {
    /// A job on its way back to a queue.
    Job(InHand, Departure),
    /// A message on its way to the dead queue.
    Dead(DeadMessage),
}

/// An undecodable message in hand.
#[derive(Debug)]
pub(super) struct DeadMessage {
    pub receipt: Receipt,
    /// The lane of the queue that it came from.
    pub source_lane: Lane,
    pub letter: DeadLetter,
}

/// What could not leave and is still in hand.
#[derive(Debug)]
pub(super) struct StillHere(pub Departing);

/// The stage's own means.
pub(super) struct Departures<B, R> {
    pub broker: Arc<B>,
    pub records: Arc<R>,
    pub telemetry: Telemetry,
}

impl<B: Broker, R: Records> Departures<B, R> {
    /// Runs until the sending side is closed and everything has left.
    pub async fn run<E: From<StillHere>>(
        self,
        mut departing: mpsc::UnboundedReceiver<Departing>,
        still_here: mpsc::UnboundedSender<E>,
    ) {
        let mut batch = Vec::with_capacity(BATCH);
        while departing.recv_many(&mut batch, BATCH).await > 0 {
            let (mut jobs, mut dead) = split(std::mem::take(&mut batch));
            // The broker delivers these again: a copy would be one too many.
            jobs.retain(|(job, _)| self.broker.is_live(&job.receipt));
            dead.retain(|message| self.broker.is_live(&message.receipt));
            let (waits, jobs) = jobs.into_iter().partition(|(_, why)| waits(why));
            let (waits, jobs, dead) =
                tokio::join!(self.keep(waits), self.requeue(jobs), self.bury(dead));
            for left in waits.into_iter().chain(jobs).chain(dead) {
                // A receiver that is gone means that the worker is stopping.
                let _ = still_here.send(E::from(StillHere(left)));
            }
        }
    }

    async fn requeue(&self, jobs: Vec<(InHand, Departure)>) -> Vec<Departing> {
        if jobs.is_empty() {
            return Vec::new();
        }
        let results = self
            .broker
            .requeue(
                jobs.iter()
                    .map(|(job, why)| job.requeue(route(why)))
                    .collect(),
            )
            .await;
        let mut gone = Vec::with_capacity(jobs.len());
        let mut here = Vec::new();
        for ((job, why), result) in jobs.into_iter().zip(results) {
            if result.is_ok() {
                self.count(&job, &why);
                gone.push(job.receipt);
            } else {
                here.push(Departing::Job(job, why));
            }
        }
        self.broker.acknowledge(gone);
        here
    }

    /// Writes down jobs that wait, part by part, and lets go of the messages of each part when it is
    /// written.
    async fn keep(&self, jobs: Vec<(InHand, Departure)>) -> Vec<Departing> {
        let mut here = Vec::new();
        let mut parts = parts(jobs).into_iter();
        for part in parts.by_ref() {
            let Err((part, error)) = self.keep_part(part).await else {
                continue;
            };
            here.extend(part);
            // An error that belongs to a job of this part says nothing of the others.
            if !error.may_be_the_questions() {
                break;
            }
        }
        here.extend(parts.flatten());
        let here = here.into_iter().map(|(job, why)| Departing::Job(job, why));
        here.collect()
    }

    async fn keep_part(&self, part: Part) -> Result<(), (Part, RecordsError)> {
        let waiting: Vec<_> = part.iter().filter_map(as_waiting).collect();
        if let Err(error) = self.records.keep(&waiting).await {
            return Err((part, error));
        }
        for (job, why) in &part {
            self.count(job, why);
        }
        let gone = part.into_iter().map(|(job, _)| job.receipt).collect();
        self.broker.acknowledge(gone);
        Ok(())
    }

    fn count(&self, job: &InHand, why: &Departure) {
        let lane = job.lane();
        let tally = |what| self.telemetry.tally().add(job.account(), lane, what, 1);
        match why {
            Departure::Shed(limit) => {
                self.telemetry.shed(lane, *limit);
                tally(Count::Shed(*limit));
            }
            Departure::Park => self.telemetry.parked(lane),
            Departure::Astray => {}
            Departure::Wait(reason, _) => {
                self.telemetry.waits(lane, *reason);
                tally(Count::Deferred);
            }
        }
    }

    async fn bury(&self, dead: Vec<DeadMessage>) -> Vec<Departing> {
        if dead.is_empty() {
            return Vec::new();
        }
        let results = self
            .broker
            .bury(dead.iter().map(|message| message.letter.clone()).collect())
            .await;
        let mut gone = Vec::with_capacity(dead.len());
        let mut here = Vec::new();
        for (message, result) in dead.into_iter().zip(results) {
            if result.is_ok() {
                self.telemetry.buried(
                    message.source_lane,
                    message.letter.reason,
                    &message.letter.detail,
                );
                self.telemetry.settled(message.source_lane, Outcome::Dead);
                gone.push(message.receipt);
            } else {
                here.push(Departing::Dead(message));
            }
        }
        self.broker.acknowledge(gone);
        here
    }
}

/// Jobs that are written down together.
type Part = Vec<(InHand, Departure)>;

/// Cuts jobs into parts that the database takes in one go.
fn parts(jobs: Vec<(InHand, Departure)>) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut room = 0;
    for (job, why) in jobs {
        let bytes = job.job.payload.as_bytes().len();
        match parts.last_mut() {
            Some(part) if room > 0 => part.push((job, why)),
            _ => {
                parts.push(vec![(job, why)]);
                room = STATEMENT_BYTES;
            }
        }
        room = room.saturating_sub(bytes);
    }
    parts
}

fn waits(why: &Departure) -> bool {
    matches!(why, Departure::Wait(..))
}

fn as_waiting((job, why): &(InHand, Departure)) -> Option<WaitingJob> {
    match why {
        Departure::Wait(reason, due) => Some(job.waiting(*reason, due.clone())),
        Departure::Shed(_) | Departure::Park | Departure::Astray => None,
    }
}

/// The way of a job that goes back to the broker.
fn route(why: &Departure) -> Route {
    match why {
        Departure::Shed(_) => Route::Shed,
        Departure::Astray => Route::Queue,
        Departure::Park | Departure::Wait(..) => Route::Park,
    }
}

fn split(batch: Vec<Departing>) -> (Vec<(InHand, Departure)>, Vec<DeadMessage>) {
    let mut jobs = Vec::with_capacity(batch.len());
    let mut dead = Vec::new();
    for departing in batch {
        match departing {
            Departing::Job(job, why) => jobs.push((job, why)),
            Departing::Dead(message) => dead.push(message),
        }
    }
    (jobs, dead)
}

#[cfg(test)]
mod tests;
