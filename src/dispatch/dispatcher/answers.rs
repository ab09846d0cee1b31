//! The meter's answers: what is admitted starts, what is not goes its way.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Dispatcher;
use crate::dispatch::ceilings::Reached;
use crate::dispatch::in_hand::{Departure, InHand, Try};
use crate::dispatch::ports::{AccountAnswer, Broker, Carrier, Clock, Meter};
use crate::dispatch::send::{Ending, Finished, send_all};
use crate::dispatch::settle::Settlement;
use crate::domain::{Lane, Limit, Outcome, Refusal, SentRecord, Verdict};
use crate::telemetry::DuplicateKind;

impl<B: Broker, M: Meter, C: Carrier, K: Clock> Dispatcher<B, M, C, K> {
    pub(super) fn on_answers(&mut self, lane: Lane, tries: Vec<Try>, answers: Vec<AccountAnswer>) {
        self.asking[lane.index()] -= 1;
        let now = Instant::now();
        let mut tries = tries.into_iter();
        let mut admitted = Vec::new();
        for answer in answers {
            let mine: Vec<Try> = tries.by_ref().take(answer.verdicts.len()).collect();
            if let Some(first) = mine.first() {
                self.note_counter(lane, &first.in_hand, &answer, now);
            }
            let mut over = Vec::new();
            for (attempt, verdict) in mine.into_iter().zip(answer.verdicts) {
                self.on_verdict(attempt, verdict, &mut admitted, &mut over);
            }
            // In reverse, so that they stand in their old order again.
            for in_hand in over.into_iter().rev() {
                self.queues[lane.index()].put_back(in_hand);
            }
        }
        self.start(admitted);
    }

    /// Remembers which ceilings the counter has reached.
    pub(super) fn note_counter(
        &mut self,
        lane: Lane,
        in_hand: &InHand,
        answer: &AccountAnswer,
        now: Instant,
    ) {
        let account = in_hand.account();
        let Some(ceilings) = self.options.ceilings(account) else {
            return;
        };
        let shed = answer.verdicts.contains(&Verdict::Shed(Limit::Lane));
        let window = answer.counter.window_left;
        for other in Lane::ALL {
            let full = answer.counter.count >= ceilings.of_lane(other) && !window.is_zero();
            if full || (shed && other == lane) {
                // A shed without a window means a ceiling that was lowered meanwhile.
                let until = now
                    + if window.is_zero() {
                        Duration::from_millis(1)
                    } else {
                        window
                    };
                self.reached.note(
                    other,
                    account,
                    Reached {
                        until,
                        mode: answer.mode,
                    },
                );
            }
        }
    }

    pub(super) fn on_verdict(
        &mut self,
        mut attempt: Try,
        verdict: Verdict,
        admitted: &mut Vec<Try>,
        over: &mut Vec<InHand>,
    ) {
        match verdict {
            Verdict::Admitted { possible_duplicate } => {
                let maybe_sent = std::mem::take(&mut attempt.in_hand.maybe_sent);
                if possible_duplicate || maybe_sent {
                    self.world.telemetry.duplicate(DuplicateKind::Possible);
                }
                admitted.push(attempt);
            }
            Verdict::Shed(Limit::Lane) => {
                self.give_back(&attempt.in_hand);
                attempt.in_hand.turned_away = true;
                over.push(attempt.in_hand);
            }
            Verdict::Shed(limit) => {
                self.give_back(&attempt.in_hand);
                self.depart(attempt.in_hand, Departure::Shed(limit));
            }
            Verdict::Capped(_) => {
                self.give_back(&attempt.in_hand);
                self.settle(attempt.in_hand, Outcome::Refused(Refusal::FrequencyCap));
            }
            Verdict::Duplicate(record) => self.on_duplicate(attempt.in_hand, record),
        }
    }

    /// A job that was sent before: its outcome is told once more, for the first telling may have
    /// failed, and its delivery is settled.
    fn on_duplicate(&mut self, in_hand: InHand, record: SentRecord) {
        self.give_back(&in_hand);
        self.world.telemetry.duplicate(DuplicateKind::Prevented);
        let sent_at = i64::try_from(record.at_ms).ok();
        let sent_at = sent_at.and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
        let settled_at = sent_at.unwrap_or_else(|| self.world.clock.now());
        let mut settlement = Settlement::of(in_hand, Outcome::Dispatched, settled_at);
        settlement.carrier = Some(record.carrier);
        settlement.carrier_ref = record.carrier_ref;
        settlement.repeated = true;
        let _ = self.outlets.settle.send(settlement);
    }

    /// Starts what is admitted, except what has become worthless while the meter was asked.
    fn start(&mut self, admitted: Vec<Try>) {
        let (wall, now) = (self.world.clock.now(), Instant::now());
        let (expired, admitted): (Vec<_>, Vec<_>) = admitted
            .into_iter()
            .partition(|attempt| attempt.in_hand.job.is_expired(wall));
        for attempt in expired {
            self.give_back(&attempt.in_hand);
            let result = Ending::Expired;
            let _ = self.outlets.record.send(vec![Finished { attempt, result }]);
        }
        if admitted.is_empty() {
            return;
        }
        for Try { in_hand, .. } in &admitted {
            let wait = in_hand.waited(wall, now);
            self.world.telemetry.waited(in_hand.lane(), wait);
        }
        let (fleet, telemetry) = (Arc::clone(&self.world.fleet), self.world.telemetry.clone());
        self.work
            .spawn(send_all(fleet, admitted, telemetry, self.events.clone()));
    }

    pub(super) fn give_back(&mut self, in_hand: &InHand) {
        self.slots[in_hand.carrier].give_back(in_hand.lane());
        if in_hand.is_trial {
            self.breakers[in_hand.carrier].trial_withdrawn(Instant::now());
        }
    }
}
