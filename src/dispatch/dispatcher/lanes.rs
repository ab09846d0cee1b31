//! Which lanes are open: whether deliveries are taken and jobs are sent.
//!
//! Without an answer from the records nothing is sent at all: the deliveries go back to their
//! queues, once, for workers that get answers, and this one asks again each second. While the
//! ledger does not keep up, marketing stops.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};

use super::{Dispatcher, Event};
use crate::dispatch::in_hand::{Departure, InHand};
use crate::dispatch::ports::{Broker, Carrier, Clock, DeadLetter, Meter, Records, RecordsError};
use crate::domain::{Lane, Outcome};

/// How often the records are asked whether they answer again.
const PROBE_EVERY: Duration = Duration::from_secs(1);

/// What is said of a job that nothing can be asked about.
const UNASKABLE: &str = "the database cannot be asked about this job's recipient, campaign, journey \
    or batch: a value does not exist in its encoding";

/// What keeps lanes closed.
#[derive(Debug)]
pub(super) struct Lanes {
    /// Whether the records answer.
    records: bool,
    /// Whether the ledger keeps up.
    ledger: bool,
}

impl Lanes {
    /// Open lanes.
    pub fn open() -> Self {
        Self {
            records: true,
            ledger: true,
        }
    }

    /// Whether jobs of a lane are sent.
    pub fn are_open(&self, lane: Lane) -> bool {
        self.records && (self.ledger || lane == Lane::Transactional)
    }
}

impl<B: Broker, M: Meter, C: Carrier, K: Clock, R: Records> Dispatcher<B, M, C, K, R> {
    /// Where there are records, nothing is sent before they have answered once.
    pub(super) fn open_when_records_answer(&mut self) {
        if self.world.records.exist() {
            self.world.telemetry.records_awaited();
            self.change_lanes(|lanes| lanes.records = false);
            self.probe();
        }
    }

    /// A question to the records had no answer: nothing of it is sent.
    pub(super) fn on_unchecked(&mut self, lane: Lane, jobs: Vec<InHand>, why: RecordsError) {
        self.asking[lane.index()] -= 1;
        if self.lanes.records {
            self.world.telemetry.records_away(why);
            self.change_lanes(|lanes| lanes.records = false);
            self.probe();
        }
        for in_hand in &jobs {
            self.give_back(in_hand);
        }
        self.turn_back(jobs);
    }

    /// The records answer again.
    pub(super) fn on_records_back(&mut self) {
        self.world.telemetry.records_back();
        self.change_lanes(|lanes| lanes.records = true);
    }

    /// The ledger does not keep up, or does again.
    pub(super) fn on_ledger(&mut self, keeps_up: bool) {
        self.change_lanes(|lanes| lanes.ledger = keeps_up);
    }

    fn change_lanes(&mut self, change: impl FnOnce(&mut Lanes)) {
        let before = Lane::ALL.map(|lane| self.lanes.are_open(lane));
        change(&mut self.lanes);
        for lane in Lane::ALL {
            let open = self.lanes.are_open(lane);
            if open != before[lane.index()] {
                self.world.broker.take(lane, open);
                if open {
                    self.bring_in_stranded(lane);
                } else {
                    self.empty(lane);
                }
            }
        }
    }

    /// Returns what waits here to its queue, for other workers.
    fn empty(&mut self, lane: Lane) {
        let mut jobs = self.queues[lane.index()].take_all();
        jobs.extend(std::mem::take(&mut self.parking[lane.index()]));
        self.turn_back(jobs);
    }

    /// Jobs that may not be sent now. One that came from an open queue would come again at once, and
    /// were it kept, so many like it would take up all that may be delivered by that queue: it goes
    /// on to its own. One that was tried here knows more than its message does and stays.
    pub(super) fn turn_back(&mut self, jobs: Vec<InHand>) {
        let mut returned = Vec::new();
        for job in jobs {
            if self.lanes.are_open(job.source_lane) {
                self.astray[job.lane().index()].push_back(job);
            } else if job.was_tried_here() {
                self.stranded.push(job);
            } else {
                returned.push(job.receipt);
            }
        }
        if !returned.is_empty() {
            self.world.broker.give_back(returned);
        }
    }

    /// Sends jobs that came by the other lane's queue on to their own, no faster than the pace.
    pub(super) fn send_on(&mut self, now: Instant) {
        for place in Lane::ALL.map(Lane::index) {
            while !self.astray[place].is_empty() && self.paces[place].spend(now) {
                if let Some(in_hand) = self.astray[place].pop_front() {
                    self.depart(in_hand, Departure::Astray);
                }
            }
        }
    }

    /// Jobs that the records cannot be asked about. They must not be sent unchecked, nor come again
    /// for ever: they are kept where a person finds them.
    pub(super) fn bury_unaskable(&mut self, jobs: Vec<InHand>) {
        for in_hand in jobs {
            self.give_back(&in_hand);
            self.bury(
                in_hand.receipt,
                in_hand.source_lane,
                DeadLetter {
                    reason: Outcome::Dead.reason(),
                    detail: UNASKABLE.to_owned(),
                    at: self.world.clock.now(),
                    payload: in_hand.job.payload,
                },
            );
        }
    }

    fn bring_in_stranded(&mut self, lane: Lane) {
        let now = Instant::now();
        let (mine, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.stranded)
            .into_iter()
            .partition(|job| job.lane() == lane);
        self.stranded = others;
        let astray = std::mem::take(&mut self.astray[lane.index()]);
        for in_hand in mine.into_iter().chain(astray) {
            self.arrive(in_hand, now);
        }
    }

    fn probe(&mut self) {
        let (records, events) = (Arc::clone(&self.world.records), self.events.clone());
        self.work.spawn(async move {
            // From start to start: a question without an answer may take a second itself.
            let mut times = interval(PROBE_EVERY);
            times.set_missed_tick_behavior(MissedTickBehavior::Delay);
            times.tick().await;
            while records.probe().await.is_err() {
                times.tick().await;
            }
            // Nobody listens any more when the worker has stopped.
            let _ = events.send(Event::RecordsBack);
        });
    }
}
