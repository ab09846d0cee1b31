//! The meter's answers: what is admitted starts, what is not goes its way.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Dispatcher;
use super::ask::target;
use crate::dispatch::ceilings::Reached;
use crate::dispatch::in_hand::{Departure, InHand, Try};
use crate::dispatch::ports::{
    AccountAnswer, Admission, Broker, Carrier, Clock, Due, Meter, Records, WaitReason,
};
use crate::dispatch::send::{Ending, Finished, send_all};
use crate::dispatch::settle::{Settlement, Unsent};
use crate::domain::{Lane, Limit, Outcome, SentRecord, Verdict};
use crate::gates::TurnedAway;
use crate::telemetry::DuplicateKind;

/// How often a job is shed by the ceiling of its number or service before it waits in the database.
const SHEDS_BEFORE_WAITING: u32 = 2;

impl<B: Broker, M: Meter, C: Carrier, K: Clock, R: Records> Dispatcher<B, M, C, K, R> {
    pub(super) fn on_answers(
        &mut self,
        lane: Lane,
        tries: Vec<Try>,
        answers: Vec<AccountAnswer>,
        turned: Vec<(InHand, TurnedAway)>,
    ) {
        self.asking[lane.index()] -= 1;
        for (in_hand, answer) in turned {
            self.give_back(&in_hand);
            self.on_turned_away(in_hand, answer);
        }
        let now = Instant::now();
        let mut tries = tries.into_iter();
        let mut admitted = Vec::new();
        for answer in answers {
            let mut mine: Vec<Try> = tries.by_ref().take(answer.verdicts.len()).collect();
            note_admissions(&mut mine, &answer, self.world.clock.now());
            if let Some(first) = mine.first() {
                self.note_counter(lane, &first.in_hand, &answer, now);
            }
            let mut over = Vec::new();
            for (attempt, verdict) in mine.into_iter().zip(answer.verdicts) {
                self.on_verdict(attempt, verdict, &mut admitted, &mut over);
            }
            // In reverse, so that they stand in their old order again.
            if self.lanes.are_open(lane) {
                for in_hand in over.into_iter().rev() {
                    self.queues[lane.index()].put_back(in_hand);
                }
            } else {
                self.turn_back(over);
            }
        }
        self.start(admitted);
    }

    /// What becomes of a job that a gate did not let pass.
    fn on_turned_away(&mut self, in_hand: InHand, answer: TurnedAway) {
        match answer {
            TurnedAway::Ended {
                outcome,
                detail,
                next_allowed_at,
            } => self.settle_as(
                in_hand,
                Unsent {
                    outcome,
                    detail,
                    next_allowed_at,
                },
            ),
            TurnedAway::Waits(reason, due) => self.depart(in_hand, Departure::Wait(reason, due)),
            TurnedAway::Sent(record) => self.on_duplicate(in_hand, record),
        }
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
            // Only an API server hears that; the next round tells more.
            Verdict::AdmittedBefore { .. } => {
                self.give_back(&attempt.in_hand);
                self.depart(attempt.in_hand, Departure::Shed(Limit::Claim));
            }
            Verdict::Shed(Limit::Lane) => {
                self.give_back(&attempt.in_hand);
                attempt.in_hand.turned_away = true;
                attempt.in_hand.headers.admitted_ms = None;
                over.push(attempt.in_hand);
            }
            Verdict::Shed(limit) => {
                self.give_back(&attempt.in_hand);
                let departure = self.way_of(&attempt.in_hand, limit);
                self.depart(attempt.in_hand, departure);
            }
            Verdict::Capped(capped) => {
                self.give_back(&attempt.in_hand);
                self.settle_as(attempt.in_hand, Unsent::capped(&capped));
            }
            Verdict::Duplicate(record) => {
                self.give_back(&attempt.in_hand);
                self.on_duplicate(attempt.in_hand, record);
            }
        }
    }

    /// A job that was sent before: its outcome is told once more, for the first telling may have
    /// failed, and its delivery is settled.
    fn on_duplicate(&mut self, in_hand: InHand, record: SentRecord) {
        self.world.telemetry.duplicate(DuplicateKind::Prevented);
        let sent_at = i64::try_from(record.at_ms).ok();
        let sent_at = sent_at.and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
        let settled_at = sent_at.unwrap_or_else(|| self.world.clock.now());
        let mut settlement = Settlement::of(in_hand, Outcome::Dispatched, settled_at);
        settlement.ended.carrier = Some(record.carrier);
        settlement.ended.carrier_ref = record.carrier_ref;
        settlement.ended.repeated = true;
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
            let result = Ending::Unsent(Unsent::of(Outcome::Expired));
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

    /// Where a job goes that has met a limit other than its lane's. One that keeps meeting the
    /// ceiling of its number or service waits for its turn in the database, where there is one.
    fn way_of(&self, in_hand: &InHand, limit: Limit) -> Departure {
        if !self.world.records.exist() || in_hand.headers.sheds < SHEDS_BEFORE_WAITING {
            return Departure::Shed(limit);
        }
        let policy = (self.options.policy)(in_hand.account());
        let waits = policy.and_then(|policy| match limit {
            Limit::Number => target(policy.number_ceiling(&in_hand.job))
                .map(|ceiling| Departure::Wait(WaitReason::Number, Due::InTurn(ceiling))),
            Limit::Service => target(policy.service_ceiling(&in_hand.job))
                .map(|ceiling| Departure::Wait(WaitReason::Service, Due::InTurn(ceiling))),
            Limit::Lane | Limit::Claim => None,
        });
        waits.unwrap_or(Departure::Shed(limit))
    }

    pub(super) fn give_back(&mut self, in_hand: &InHand) {
        self.slots[in_hand.carrier].give_back(in_hand.lane());
        if in_hand.is_trial {
            self.breakers[in_hand.carrier].trial_withdrawn(Instant::now());
        }
    }
}

/// Notes on each admitted job what its account's counter stood at. The answer tells only the last
/// count; jobs were counted in order.
fn note_admissions(tries: &mut [Try], answer: &AccountAnswer, at: jiff::Timestamp) {
    let mut count = answer.counter.count;
    for (attempt, verdict) in tries.iter_mut().zip(&answer.verdicts).rev() {
        if matches!(verdict, Verdict::Admitted { .. }) {
            attempt.in_hand.admission = Some(Admission {
                at,
                count,
                mode: answer.mode,
            });
            count = count.saturating_sub(1);
        }
    }
}
