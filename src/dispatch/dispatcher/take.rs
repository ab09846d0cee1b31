//! Taking: the next jobs in drain order, each with a slot of its own, and the question to the meter.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::ask::{Asked, Desk};
use super::{Dispatcher, standing};
use crate::carrier::breaker::Allowed;
use crate::dispatch::in_hand::{Departure, InHand};
use crate::dispatch::lane_queue::Next;
use crate::dispatch::ports::{Broker, Carrier, Clock, Due, Meter, Records, TryId, WaitReason};
use crate::domain::{AccountId, Lane, Outcome, Refusal};

/// The most jobs that the meter is asked about in one go.
const BATCH: usize = 512;
/// Questions to the meter that may be under way, by lane in drain order: one more for the
/// transactional lane, so that no one-time password waits for an answer to somebody else's.
const ASKING: [usize; 2] = [2, 1];

impl<B: Broker, M: Meter, C: Carrier, K: Clock, R: Records> Dispatcher<B, M, C, K, R> {
    /// Takes jobs in drain order, each with a slot of its own, and asks the meter about them.
    pub(super) fn take(&mut self, now: Instant) {
        for lane in Lane::ALL {
            if !self.lanes.are_open(lane) {
                continue;
            }
            let room = ASKING[lane.index()] > self.asking[lane.index()];
            let mut taken = Vec::new();
            let ready_left = room && self.take_lane(lane, now, &mut taken);
            if !taken.is_empty() {
                self.ask(lane, taken);
            }
            if lane == Lane::Transactional && (ready_left || !room && self.has_ready(lane, now)) {
                return;
            }
        }
    }

    /// Fills `taken` with the lane's next jobs; true when ready ones remain.
    pub(super) fn take_lane(&mut self, lane: Lane, now: Instant, taken: &mut Vec<InHand>) -> bool {
        while taken.len() < BATCH {
            let (options, reached, slots) = (&self.options, &self.reached, &self.slots);
            let standing = |account: &AccountId| standing(options, reached, lane, account, now);
            match self.queues[lane.index()].next(now, standing, |carrier| slots[carrier].free(lane))
            {
                Next::Job(in_hand) => self.take_one(*in_hand, now, taken),
                Next::NoSlot => return true,
                Next::Nothing => return false,
            }
        }
        self.has_ready(lane, now)
    }

    /// Whether the lane has a job that is neither held nor known to be over its ceiling.
    pub(super) fn has_ready(&self, lane: Lane, now: Instant) -> bool {
        self.queues[lane.index()]
            .has_ready(|account| standing(&self.options, &self.reached, lane, account, now))
    }

    /// Gives a job its slot, unless it has become pointless or its carrier is out.
    pub(super) fn take_one(&mut self, mut in_hand: InHand, now: Instant, taken: &mut Vec<InHand>) {
        if !self.world.broker.is_live(&in_hand.receipt) {
            return;
        }
        if in_hand.job.is_expired(self.world.clock.now()) {
            return self.settle(in_hand, Outcome::Expired);
        }
        if let Some(until) = self.must_wait_until(&in_hand, now) {
            let wait = Departure::Wait(WaitReason::RetryAfter, Due::At(until));
            return self.depart(in_hand, wait);
        }
        if self.carrier_is_out(&in_hand, now) {
            return self.parking[in_hand.lane().index()].push_back(in_hand);
        }
        let breaker = &mut self.breakers[in_hand.carrier];
        in_hand.is_trial = breaker.allows(now) == Allowed::Trial;
        if in_hand.is_trial {
            breaker.started(now);
        }
        self.slots[in_hand.carrier].take(in_hand.lane());
        taken.push(in_hand);
    }

    /// Asks the records, the gates and the meter about jobs that have their slots.
    pub(super) fn ask(&mut self, lane: Lane, taken: Vec<InHand>) {
        let mut asked = Vec::with_capacity(taken.len());
        for in_hand in taken {
            let Some(policy) = (self.options.policy)(in_hand.account()) else {
                self.give_back(&in_hand);
                self.settle(in_hand, Outcome::Refused(Refusal::UnknownAccount));
                continue;
            };
            self.next_try = self.next_try.wrapping_add(1);
            asked.push(Asked {
                policy,
                try_id: TryId(self.next_try),
                claim_for: self.world.fleet.at(in_hand.carrier).timeout + Duration::from_secs(1),
                in_hand,
            });
        }
        if asked.is_empty() {
            return;
        }
        let desk = Desk {
            meter: Arc::clone(&self.world.meter),
            clock: Arc::clone(&self.world.clock),
            records: Arc::clone(&self.world.records),
            claim_life: self.options.claim_life,
        };
        let events = self.events.clone();
        self.asking[lane.index()] += 1;
        self.work.spawn(async move {
            // Nobody listens any more when the worker has stopped in a hurry.
            let _ = events.send(desk.ask(lane, asked).await);
        });
    }
}
