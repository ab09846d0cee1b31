//! What comes back: ended tries, tries to be repeated, and jobs over their ceilings.

use tokio::time::Instant;

use super::Dispatcher;
use crate::carrier::breaker::{Allowed, reached};
use crate::dispatch::in_hand::Departure;
use crate::dispatch::ports::{Broker, Carrier, Clock, Meter};
use crate::dispatch::record::TryAgain;
use crate::dispatch::retry::Retry;
use crate::dispatch::send::Finished;
use crate::domain::{Lane, Limit, MeterMode};

impl<B: Broker, M: Meter, C: Carrier, K: Clock> Dispatcher<B, M, C, K> {
    pub(super) fn on_finished(&mut self, finished: Vec<Finished>) {
        let now = Instant::now();
        for one in &finished {
            let in_hand = &one.attempt.in_hand;
            self.slots[in_hand.carrier].give_back(in_hand.lane());
            self.breakers[in_hand.carrier].record(now, reached(&one.result));
        }
        let _ = self.outlets.record.send(finished);
    }

    /// A failed try waits here when the wait is short and not many do, else in the parking queue.
    pub(super) fn on_try_again(&mut self, again: TryAgain) {
        let TryAgain {
            in_hand,
            retry_after,
        } = again;
        let lane = in_hand.lane();
        self.world.telemetry.retried(lane);
        self.next_try = self.next_try.wrapping_add(1);
        let spread = f64::from(u8::try_from(self.next_try % 256).unwrap_or(0)) / 256.0;
        match self
            .options
            .retry
            .after(in_hand.attempts, retry_after, spread)
        {
            Retry::Here(delay) if self.retrying.len() < self.options.most_held() => {
                self.retrying.until(Instant::now() + delay, in_hand);
            }
            // The recorder has ended those whose tries are used up.
            Retry::Here(_) | Retry::Park | Retry::Exhausted => {
                self.depart(in_hand, Departure::Park);
            }
        }
    }

    /// Whether jobs of a lane wait for the pace to let them go.
    pub(super) fn has_surplus(&self, lane: Lane) -> bool {
        self.queues[lane.index()].has_surplus() || !self.parking[lane.index()].is_empty()
    }

    /// Parks jobs whose carrier is out, no faster than the pace. Those whose carrier may be tried
    /// again meanwhile go back among the ready ones.
    pub(super) fn park(&mut self, now: Instant) {
        for lane in Lane::ALL {
            let place = lane.index();
            for _ in 0..self.parking[place].len() {
                let Some(in_hand) = self.parking[place].pop_front() else {
                    break;
                };
                if !matches!(
                    self.breakers[in_hand.carrier].allows(now),
                    Allowed::No { .. }
                ) {
                    self.arrive(in_hand, now);
                } else if self.paces[place].spend(now) {
                    self.depart(in_hand, Departure::Park);
                } else {
                    self.parking[place].push_front(in_hand);
                    break;
                }
            }
        }
    }

    /// Sends back what is over its ceiling and not held, no faster than its pace.
    pub(super) fn shed_surplus(&mut self, now: Instant) {
        for lane in Lane::ALL {
            let place = lane.index();
            while self.queues[place].has_surplus() && self.paces[place].spend(now) {
                let Some(in_hand) = self.queues[place].take_surplus() else {
                    break;
                };
                let local = self
                    .reached
                    .get(lane, in_hand.account(), now)
                    .is_some_and(|reached| reached.mode == MeterMode::Local);
                if local {
                    self.world.telemetry.fell_open_again(lane, 1);
                }
                self.depart(in_hand, Departure::Shed(Limit::Lane));
            }
        }
    }
}
