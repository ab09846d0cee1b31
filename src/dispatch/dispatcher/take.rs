//! Taking: the next jobs in drain order, each with a slot of its own, and the question to the meter.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Dispatcher, Event, standing};
use crate::carrier::breaker::Allowed;
use crate::dispatch::in_hand::{InHand, Try};
use crate::dispatch::lane_queue::Next;
use crate::dispatch::ports::{AccountRequest, Broker, Carrier, Clock, JobRequest, Meter, TryId};
use crate::domain::{AccountId, Lane, Outcome, Refusal};

/// The most jobs that the meter is asked about in one go.
const BATCH: usize = 256;
/// Questions to the meter that may be under way, by lane in drain order: one more for the
/// transactional lane, so that no one-time password waits for an answer to somebody else's.
const ASKING: [usize; 2] = [2, 1];

impl<B: Broker, M: Meter, C: Carrier, K: Clock> Dispatcher<B, M, C, K> {
    /// Takes jobs in drain order, each with a slot of its own, and asks the meter about them.
    pub(super) fn take(&mut self, now: Instant) {
        for lane in Lane::ALL {
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
            match self.queues[lane.index()]
                .next(now, standing, |carrier| slots[carrier].free(lane) > 0)
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

    pub(super) fn ask(&mut self, lane: Lane, taken: Vec<InHand>) {
        let mut places: HashMap<_, usize> = HashMap::new();
        let mut requests: Vec<AccountRequest> = Vec::new();
        let mut by_account: Vec<Vec<Try>> = Vec::new();
        for in_hand in taken {
            let Some(ceilings) = self.options.ceilings(in_hand.account()) else {
                self.give_back(&in_hand);
                self.settle(in_hand, Outcome::Refused(Refusal::UnknownAccount));
                continue;
            };
            let place = *places.entry(in_hand.account().clone()).or_insert_with(|| {
                requests.push(AccountRequest {
                    account: in_hand.account().clone(),
                    ceilings,
                    jobs: Vec::new(),
                });
                by_account.push(Vec::new());
                requests.len() - 1
            });
            self.next_try = self.next_try.wrapping_add(1);
            let try_id = TryId(self.next_try);
            requests[place].jobs.push(JobRequest {
                id: in_hand.job.head.id.clone(),
                lane,
                try_id,
                claim_for: self.world.fleet.at(in_hand.carrier).timeout + Duration::from_secs(1),
                caps: Vec::new(),
                number: None,
                service: None,
            });
            by_account[place].push(Try { in_hand, try_id });
        }
        let tries = by_account.into_iter().flatten().collect();
        let (meter, events) = (Arc::clone(&self.world.meter), self.events.clone());
        self.asking[lane.index()] += 1;
        self.work.spawn(async move {
            let answers = meter.admit(requests).await;
            let _ = events.send(Event::Answered {
                lane,
                tries,
                answers,
            });
        });
    }
}
