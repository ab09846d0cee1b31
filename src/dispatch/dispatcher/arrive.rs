//! Arrival: what a job must pass before it may stand in its lane's queue.

use tokio::time::Instant;

use super::{Dispatcher, standing};
use crate::dispatch::depart::{DeadMessage, Departing};
use crate::dispatch::in_hand::InHand;
use crate::dispatch::ports::{
    Broker, Carrier, Clock, DeadLetter, Delivery, Meter, Receipt, Records,
};
use crate::dispatch::settle::{Settlement, Unsent};
use crate::domain::{Decoded, Failure, Lane, Outcome, Refusal};

impl<B: Broker, M: Meter, C: Carrier, K: Clock, R: Records> Dispatcher<B, M, C, K, R> {
    pub(super) fn on_deliveries(&mut self, batch: Vec<Delivery>) {
        let now = Instant::now();
        for delivery in batch {
            self.on_delivery(delivery, now);
        }
    }

    pub(super) fn on_delivery(&mut self, delivery: Delivery, now: Instant) {
        let Delivery {
            receipt,
            source_lane,
            own_queue,
            headers,
            received_at,
            decoded,
        } = delivery;
        match decoded {
            Decoded::Undecodable { detail, payload } => {
                let letter = DeadLetter {
                    reason: Outcome::Dead.reason(),
                    detail,
                    at: self.world.clock.now(),
                    payload,
                };
                self.bury(receipt, source_lane, letter);
            }
            Decoded::Invalid {
                head,
                field,
                detail,
            } => {
                let end = Unsent {
                    detail: Some(detail.into()),
                    ..Unsent::of(Outcome::Refused(Refusal::Invalid(field)))
                };
                let now = self.world.clock.now();
                let settlement = Settlement::of_head(receipt, *head, headers, end, now);
                let _ = self.outlets.settle.send(settlement);
            }
            Decoded::Job(job) => {
                let carrier = self.world.fleet.place_for(job.channel);
                let attempts = headers.attempts;
                let in_hand = InHand {
                    job,
                    receipt,
                    source_lane,
                    own_queue,
                    headers,
                    received_at,
                    held_since: None,
                    carrier,
                    is_trial: false,
                    attempts,
                    maybe_sent: false,
                    turned_away: false,
                    admission: None,
                    caps: Vec::new(),
                };
                self.arrive(in_hand, now);
            }
        }
    }

    /// What a job must pass before it may stand in the queue.
    pub(super) fn arrive(&mut self, in_hand: InHand, now: Instant) {
        let wall = self.world.clock.now();
        if in_hand.job.is_expired(wall) {
            return self.settle(in_hand, Outcome::Expired);
        }
        if self.options.ceilings(in_hand.account()).is_none() {
            return self.settle(in_hand, Outcome::Refused(Refusal::UnknownAccount));
        }
        if in_hand.attempts >= self.options.retry.max_attempts {
            return self.settle(in_hand, Outcome::Failed(Failure::AttemptsExhausted));
        }
        let lane = in_hand.lane();
        if !self.lanes.are_open(lane) {
            return self.turn_back(vec![in_hand]);
        }
        let standing = standing(&self.options, &self.reached, lane, in_hand.account(), now);
        self.queues[lane.index()].push(in_hand, standing, now);
    }

    pub(super) fn bury(&self, receipt: Receipt, source_lane: Lane, letter: DeadLetter) {
        let _ = self.outlets.depart.send(Departing::Dead(DeadMessage {
            receipt,
            source_lane,
            letter,
        }));
    }

    pub(super) fn decide_anew(&mut self, departing: Departing, now: Instant) {
        match departing {
            Departing::Job(in_hand, _) => {
                if self.world.broker.is_live(&in_hand.receipt) {
                    self.arrive(
                        InHand {
                            held_since: None,
                            ..in_hand
                        },
                        now,
                    );
                }
            }
            Departing::Dead(message) => {
                if self.world.broker.is_live(&message.receipt) {
                    let _ = self.outlets.depart.send(Departing::Dead(message));
                }
            }
        }
    }
}
