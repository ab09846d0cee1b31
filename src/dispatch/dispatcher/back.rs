//! What comes back: ended tries, tries to be repeated, and jobs over their ceilings.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::Dispatcher;
use crate::carrier::breaker::{Allowed, reached};
use crate::dispatch::in_hand::{Departure, InHand};
use crate::dispatch::options::PressureWatch;
use crate::dispatch::ports::{Broker, Carrier, Clock, Due, Meter, Records, WaitReason};
use crate::dispatch::record::TryAgain;
use crate::dispatch::retry::Retry;
use crate::dispatch::send::{Ending, Finished};
use crate::domain::{AccountId, Lane, Limit, MeterMode};

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

    /// When jobs of a lane that wait for a pace to let them go may go; `None` when there are none.
    pub(super) fn next_shed(&self, lane: Lane) -> Option<Instant> {
        let place = lane.index();
        let on_their_way = [&self.parking[place], &self.astray[place]];
        let paced = on_their_way.iter().any(|jobs| !jobs.is_empty())
            || self.queues[place].has_surplus(|account| !self.has_own_queue(lane, account));
        let paced = paced.then(|| self.paces[place].next());
        let moves = self.queues[place].has_surplus(|account| self.has_own_queue(lane, account));
        let moves = moves.then(|| self.moves[place].next());
        paced.into_iter().chain(moves).min()
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

    /// Sends back what is over its ceiling and not held, no faster than its pace. What goes over to its
    /// account's own queue by that has a pace of its own: it does not come back, and others' jobs
    /// stand behind it.
    pub(super) fn shed_surplus(&mut self, now: Instant) {
        for lane in Lane::ALL {
            let place = lane.index();
            while self.moves[place].is_free(now) {
                let watch = self.options.pressure.as_ref();
                let has_own = |account: &AccountId| has_own_queue(watch, lane, account);
                let Some(in_hand) = self.queues[place].take_surplus(now, has_own) else {
                    break;
                };
                self.moves[place].spend(now);
                self.shed(in_hand, now);
            }
            while self.paces[place].is_free(now) {
                let watch = self.options.pressure.as_ref();
                let shares = |account: &AccountId| !has_own_queue(watch, lane, account);
                let Some(in_hand) = self.queues[place].take_surplus(now, shares) else {
                    break;
                };
                self.paces[place].spend(now);
                self.shed(in_hand, now);
            }
        }
    }

    fn has_own_queue(&self, lane: Lane, account: &AccountId) -> bool {
        has_own_queue(self.options.pressure.as_ref(), lane, account)
    }

    fn shed(&mut self, in_hand: InHand, now: Instant) {
        let lane = in_hand.lane();
        let reached = self.reached.get(lane, in_hand.account(), now);
        let local = reached.is_some_and(|reached| reached.mode == MeterMode::Local);
        // What the meter has said itself, it has counted itself.
        if local && !in_hand.turned_away {
            self.world.telemetry.fell_open_again(lane, 1);
        }
        self.depart(in_hand, Departure::Shed(Limit::Lane));
    }
}

fn has_own_queue(watch: Option<&PressureWatch>, lane: Lane, account: &AccountId) -> bool {
    watch.is_some_and(|watch| (watch.has_own_queue)(lane, account))
}
