//! What comes back: ended tries, tries to be repeated, and jobs over their ceilings.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::Dispatcher;
use crate::carrier::breaker::{Allowed, reached};
use crate::dispatch::in_hand::{Departure, InHand};
use crate::dispatch::ports::{Broker, Carrier, Clock, Due, Meter, Records, WaitReason};
use crate::dispatch::record::TryAgain;
use crate::dispatch::retry::Retry;
use crate::dispatch::send::{Ending, Finished};
use crate::domain::{Lane, Limit, MeterMode};

impl<B: Broker, M: Meter, C: Carrier, K: Clock, R: Records> Dispatcher<B, M, C, K, R> {
    pub(super) fn on_finished(&mut self, finished: Vec<Finished>) {
        let now = Instant::now();
        for one in &finished {
            let in_hand = &one.attempt.in_hand;
            self.slots[in_hand.carrier].give_back(in_hand.lane());
            if let Ending::Tried(result) = &one.result {
                let breaker = &mut self.breakers[in_hand.carrier];
                let was_out = breaker.is_open();
                breaker.record(now, reached(result), in_hand.is_trial);
                if breaker.is_open() != was_out {
                    let carrier = &self.world.fleet.at(in_hand.carrier).name;
                    let error = result.as_ref().err().filter(|_| breaker.is_open());
                    let why = error.map(|error| &*error.detail);
                    self.world.telemetry.carrier_changed(carrier, why);
                }
            }
        }
        let _ = self.outlets.record.send(finished);
    }

    /// A failed try waits here when the wait is short and not many do, else in the parking queue.
    pub(super) fn on_try_again(&mut self, again: TryAgain) {
        let TryAgain {
            in_hand,
            retry_after,
        } = again;
        let now = Instant::now();
        self.world.telemetry.retried(in_hand.lane());
        if let Some(wait) = retry_after.filter(|wait| *wait > self.options.retry.longest_here) {
            self.pauses.note(&in_hand, now + wait);
        }
        self.next_try = self.next_try.wrapping_add(1);
        let spread = f64::from(u8::try_from(self.next_try % 256).unwrap_or(0)) / 256.0;
        let retry = self
            .options
            .retry
            .after(in_hand.attempts, retry_after, spread);
        match (retry, self.must_wait_until(&in_hand, now)) {
            (Retry::Here(delay), _) if self.retrying.len() < self.options.most_held() => {
                self.retrying.until(now + delay, in_hand);
            }
            (Retry::Park, Some(until)) => {
                let wait = Departure::Wait(WaitReason::RetryAfter, Due::At(until));
                self.depart(in_hand, wait);
            }
            // The recorder has ended those whose tries are used up.
            (Retry::Here(_) | Retry::Park | Retry::Exhausted, _) => {
                self.depart(in_hand, Departure::Park);
            }
        }
    }

    /// Until when a job's carrier wants to be left alone by jobs like it, where such waits are spent
    /// in the database.
    pub(super) fn must_wait_until(&self, in_hand: &InHand, now: Instant) -> Option<Timestamp> {
        let until = self.pauses.until(in_hand, now)?;
        let wait = SignedDuration::try_from(until.duration_since(now)).ok()?;
        let due = self.world.clock.now().checked_add(wait).ok()?;
        self.world.records.exist().then_some(due)
    }

    /// Whether jobs of a lane wait for the pace to let them go.
    pub(super) fn has_surplus(&self, lane: Lane) -> bool {
        let place = lane.index();
        let on_their_way = [&self.parking[place], &self.astray[place]];
        self.queues[place].has_surplus() || on_their_way.iter().any(|jobs| !jobs.is_empty())
    }

    /// Whether a job's carrier takes nothing like it just now.
    pub(super) fn carrier_is_out(&self, in_hand: &InHand, now: Instant) -> bool {
        let breaker = &self.breakers[in_hand.carrier];
        let out = match breaker.allows(now) {
            Allowed::Yes => false,
            Allowed::Trial => in_hand.attempts > 0 && !breaker.any_job_may_try(now),
            Allowed::No { .. } => true,
        };
        out || self.pauses.holds(in_hand, now)
    }

    /// Parks jobs whose carrier is out, no faster than the pace. Those whose carrier may be tried
    /// again meanwhile go back among the ready ones.
    pub(super) fn park(&mut self, now: Instant) {
        for lane in Lane::ALL {
            let place = lane.index();
            let mut still_out = VecDeque::new();
            for in_hand in std::mem::take(&mut self.parking[place]) {
                if self.carrier_is_out(&in_hand, now) {
                    still_out.push_back(in_hand);
                } else {
                    self.arrive(in_hand, now);
                }
            }
            while !still_out.is_empty() && self.paces[place].spend(now) {
                if let Some(in_hand) = still_out.pop_front() {
                    self.depart(in_hand, Departure::Park);
                }
            }
            self.parking[place] = still_out;
        }
    }

    /// Sends back what is over its ceiling and not held, no faster than its pace.
    pub(super) fn shed_surplus(&mut self, now: Instant) {
        for lane in Lane::ALL {
            let place = lane.index();
            while self.queues[place].has_surplus() && self.paces[place].spend(now) {
                let Some(in_hand) = self.queues[place].take_surplus(now) else {
                    break;
                };
                let local = self
                    .reached
                    .get(lane, in_hand.account(), now)
                    .is_some_and(|reached| reached.mode == MeterMode::Local);
                // What the meter has said itself, it has counted itself.
                if local && !in_hand.turned_away {
                    self.world.telemetry.fell_open_again(lane, 1);
                }
                self.depart(in_hand, Departure::Shed(Limit::Lane));
            }
        }
    }
}
