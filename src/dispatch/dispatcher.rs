//! The dispatcher: decides which job is next, and never does the work itself.
//!
//! One task owns all of its state. It receives deliveries and the results of what it has started,
//! and after each it takes as many jobs as there are free slots, asks the meter about them in one
//! go, and starts what is admitted. Only receiving can be interrupted.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::ceilings::{Reached, ReachedCeilings};
use super::depart::{DeadMessage, Departing, StillHere};
use super::fleet::Fleet;
use super::in_hand::{Departure, InHand, Try};
use super::lane_queue::{HoldLimits, LaneQueue, Next, Standing};
use super::options::PipelineOptions;
use super::pace::Pace;
use super::ports::{
    AccountAnswer, AccountRequest, Broker, Carrier, Clock, DeadLetter, Delivery, JobRequest, Meter,
    Receipt, TryId,
};
use super::record::TryAgain;
use super::retry::Retry;
use super::send::{Finished, send_all};
use super::settle::Settlement;
use super::slots::Slots;
use super::waiting::Waiting;
use crate::carrier::breaker::{Allowed, Breaker, reached};
use crate::domain::{
    AccountId, Decoded, Field, JobHead, Lane, Limit, MeterMode, Outcome, Refusal, Verdict,
};
use crate::telemetry::{DuplicateKind, Telemetry};

/// The most jobs that the meter is asked about in one go.
const BATCH: usize = 256;
/// Questions to the meter that may be under way, by lane in drain order: one more for the
/// transactional lane, so that no one-time password waits for an answer to somebody else's.
const ASKING: [usize; 2] = [2, 1];
/// How long after the broker would not take a job back its fate is decided anew.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);
/// How often ages are measured and what has ended is swept out.
const HOUSEKEEPING: Duration = Duration::from_secs(1);
/// How long a ceiling of zero counts as reached.
const NO_WINDOW: Duration = Duration::from_secs(1);

/// Something that has happened elsewhere.
#[derive(Debug)]
pub(super) enum Event {
    /// The meter has answered.
    Answered {
        lane: Lane,
        tries: Vec<Try>,
        answers: Vec<AccountAnswer>,
    },
    /// Tries have ended.
    Finished(Vec<Finished>),
    /// A try has failed, and that is recorded.
    TryAgain(TryAgain),
    /// The broker has not taken something back.
    StillHere(StillHere),
}

impl From<Vec<Finished>> for Event {
    fn from(finished: Vec<Finished>) -> Self {
        Self::Finished(finished)
    }
}

impl From<TryAgain> for Event {
    fn from(again: TryAgain) -> Self {
        Self::TryAgain(again)
    }
}

impl From<StillHere> for Event {
    fn from(still_here: StillHere) -> Self {
        Self::StillHere(still_here)
    }
}

/// The stages that jobs go on to.
#[derive(Debug)]
pub(super) struct Outlets {
    pub record: mpsc::UnboundedSender<Vec<Finished>>,
    pub settle: mpsc::UnboundedSender<Settlement>,
    pub depart: mpsc::UnboundedSender<Departing>,
}

/// The outside world.
pub(super) struct World<B, M, C, K> {
    pub broker: Arc<B>,
    pub meter: Arc<M>,
    pub fleet: Arc<Fleet<C>>,
    pub clock: Arc<K>,
    pub telemetry: Telemetry,
}

pub(super) struct Dispatcher<B, M, C, K> {
    world: World<B, M, C, K>,
    options: PipelineOptions,
    outlets: Outlets,
    events: mpsc::UnboundedSender<Event>,
    queues: [LaneQueue; 2],
    reached: ReachedCeilings,
    slots: Vec<Slots>,
    breakers: Vec<Breaker>,
    paces: [Pace; 2],
    waiting: Waiting<Departing>,
    retrying: Waiting<InHand>,
    asking: [usize; 2],
    work: JoinSet<()>,
    next_try: u64,
    stopping: bool,
    next_housekeeping: Instant,
}

impl<B: Broker, M: Meter, C: Carrier, K: Clock> Dispatcher<B, M, C, K> {
    pub fn new(
        world: World<B, M, C, K>,
        options: PipelineOptions,
        slots: Vec<Slots>,
        outlets: Outlets,
        events: mpsc::UnboundedSender<Event>,
    ) -> Self {
        let now = Instant::now();
        let holds = HoldLimits {
            jobs: options.most_held(),
            longest: PipelineOptions::LONGEST_HOLD,
        };
        let breakers = world
            .fleet
            .iter()
            .map(|carrier| Breaker::new(carrier.breaker))
            .collect();
        Self {
            queues: [LaneQueue::new(holds), LaneQueue::new(HoldLimits::NONE)],
            reached: ReachedCeilings::default(),
            slots,
            breakers,
            paces: options
                .sheds_per_second
                .map(|count| Pace::per_second(count, now)),
            waiting: Waiting::new(),
            retrying: Waiting::new(),
            asking: [0; 2],
            work: JoinSet::new(),
            next_try: options.try_seed,
            stopping: false,
            next_housekeeping: now,
            world,
            options,
            outlets,
            events,
        }
    }

    /// Runs until `soft` is cancelled and everything that was started has ended, or until `hard`
    /// is cancelled.
    pub async fn run(
        mut self,
        mut deliveries: mpsc::UnboundedReceiver<Vec<Delivery>>,
        mut events: mpsc::UnboundedReceiver<Event>,
        soft: CancellationToken,
        hard: CancellationToken,
    ) {
        loop {
            let wake = self.next_wake();
            tokio::select! {
                biased;
                () = hard.cancelled() => return,
                () = soft.cancelled(), if !self.stopping => self.stopping = true,
                Some(event) = events.recv() => self.on_event(event),
                Some(batch) = deliveries.recv(), if !self.stopping => self.on_deliveries(batch),
                () = sleep_until(wake), if !self.stopping => {}
            }
            while let Ok(event) = events.try_recv() {
                self.on_event(event);
            }
            while let Ok(batch) = deliveries.try_recv() {
                if !self.stopping {
                    self.on_deliveries(batch);
                }
            }
            while self.work.try_join_next().is_some() {}
            if self.stopping {
                if self.is_idle() {
                    return;
                }
                continue;
            }
            self.pump();
        }
    }

    /// Whether nothing is at the meter or at a carrier any more.
    fn is_idle(&self) -> bool {
        self.asking == [0; 2] && Lane::ALL.into_iter().all(|lane| self.in_flight(lane) == 0)
    }

    fn in_flight(&self, lane: Lane) -> usize {
        self.slots.iter().map(|slots| slots.taken(lane)).sum()
    }

    fn next_wake(&self) -> Instant {
        let openings = self.queues.iter().filter_map(LaneQueue::next_opening);
        let paced = Lane::ALL
            .into_iter()
            .filter(|lane| self.queues[lane.index()].has_surplus());
        openings
            .chain(paced.map(|lane| self.paces[lane.index()].next()))
            .chain(self.waiting.next_due())
            .chain(self.retrying.next_due())
            .fold(self.next_housekeeping, Instant::min)
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Answered {
                lane,
                tries,
                answers,
            } => self.on_answers(lane, tries, answers),
            Event::Finished(finished) => self.on_finished(finished),
            Event::TryAgain(again) => self.on_try_again(again),
            Event::StillHere(StillHere(left)) => self
                .waiting
                .until(Instant::now() + PAUSE_AFTER_FAILURE, left),
        }
    }

    fn on_deliveries(&mut self, batch: Vec<Delivery>) {
        let now = Instant::now();
        for delivery in batch {
            self.on_delivery(delivery, now);
        }
    }

    fn on_delivery(&mut self, delivery: Delivery, now: Instant) {
        let Delivery {
            receipt,
            source_lane,
            headers,
            received_at,
            decoded,
        } = delivery;
        match decoded {
            Decoded::Undecodable { detail, payload } => {
                let letter = DeadLetter {
                    reason: Outcome::Dead.reason(),
                    detail,
                    payload,
                };
                let _ = self.outlets.depart.send(Departing::Dead(DeadMessage {
                    receipt,
                    source_lane,
                    letter,
                }));
            }
            Decoded::Invalid {
                head,
                field,
                detail,
            } => {
                let mut settlement = self.refusal(receipt, *head, Refusal::Invalid(field));
                settlement.detail = Some(detail.into());
                settlement.attempts = headers.attempts;
                settlement.sheds = headers.sheds;
                let _ = self.outlets.settle.send(settlement);
            }
            Decoded::Job(job) => {
                let carrier = self.world.fleet.place_for(job.channel);
                let attempts = headers.attempts;
                let in_hand = InHand {
                    job,
                    receipt,
                    headers,
                    received_at,
                    held_since: None,
                    carrier,
                    is_trial: false,
                    attempts,
                };
                self.arrive(in_hand, now);
            }
        }
    }

    fn refusal(&self, receipt: Receipt, head: JobHead, refusal: Refusal) -> Settlement {
        Settlement {
            receipt,
            head,
            outcome: Outcome::Refused(refusal),
            detail: None,
            carrier: None,
            carrier_ref: None,
            attempts: 0,
            sheds: 0,
            settled_at: self.world.clock.now(),
            repeated: false,
        }
    }

    /// What a job must pass before it may stand in the queue.
    fn arrive(&mut self, in_hand: InHand, now: Instant) {
        let wall = self.world.clock.now();
        if in_hand.job.is_expired(wall) {
            return self.settle(in_hand, Outcome::Expired);
        }
        if (self.options.ceilings)(in_hand.account()).is_none() {
            return self.settle(in_hand, Outcome::Refused(Refusal::UnknownAccount));
        }
        if in_hand
            .job
            .not_before
            .is_some_and(|not_before| not_before > wall)
        {
            return self.settle(
                in_hand,
                Outcome::Refused(Refusal::Invalid(Field::NotBefore)),
            );
        }
        let lane = in_hand.lane();
        let standing = standing(&self.options, &self.reached, lane, in_hand.account(), now);
        self.queues[lane.index()].push(in_hand, standing, now);
    }

    fn settle(&self, in_hand: InHand, outcome: Outcome) {
        let settlement = Settlement::of(in_hand, outcome, self.world.clock.now());
        let _ = self.outlets.settle.send(settlement);
    }

    /// Does whatever can be done now.
    fn pump(&mut self) {
        let now = Instant::now();
        for queue in &mut self.queues {
            queue.open(now);
        }
        while let Some(in_hand) = self.retrying.take_due(now) {
            self.arrive(in_hand, now);
        }
        while let Some(departing) = self.waiting.take_due(now) {
            self.decide_anew(departing, now);
        }
        self.take(now);
        self.shed_surplus(now);
        self.keep_house(now);
    }

    fn decide_anew(&mut self, departing: Departing, now: Instant) {
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

    /// Takes jobs in drain order, each with a slot of its own, and asks the meter about them.
    fn take(&mut self, now: Instant) {
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
    fn take_lane(&mut self, lane: Lane, now: Instant, taken: &mut Vec<InHand>) -> bool {
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
    fn has_ready(&self, lane: Lane, now: Instant) -> bool {
        self.queues[lane.index()]
            .has_ready(|account| standing(&self.options, &self.reached, lane, account, now))
    }

    /// Gives a job its slot, unless it has become pointless or its carrier is out.
    fn take_one(&mut self, mut in_hand: InHand, now: Instant, taken: &mut Vec<InHand>) {
        if !self.world.broker.is_live(&in_hand.receipt) {
            return;
        }
        if in_hand.job.is_expired(self.world.clock.now()) {
            return self.settle(in_hand, Outcome::Expired);
        }
        let breaker = &mut self.breakers[in_hand.carrier];
        match breaker.allows(now) {
            Allowed::Yes => in_hand.is_trial = false,
            Allowed::Trial => {
                breaker.started(now);
                in_hand.is_trial = true;
            }
            Allowed::No { .. } => return self.depart(in_hand, Departure::Park),
        }
        self.slots[in_hand.carrier].take(in_hand.lane());
        taken.push(in_hand);
    }

    fn depart(&self, in_hand: InHand, why: Departure) {
        let _ = self.outlets.depart.send(Departing::Job(in_hand, why));
    }

    fn ask(&mut self, lane: Lane, taken: Vec<InHand>) {
        let mut places: HashMap<_, usize> = HashMap::new();
        let mut requests: Vec<AccountRequest> = Vec::new();
        let mut by_account: Vec<Vec<Try>> = Vec::new();
        for in_hand in taken {
            let Some(ceilings) = (self.options.ceilings)(in_hand.account()) else {
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

    fn on_answers(&mut self, lane: Lane, tries: Vec<Try>, answers: Vec<AccountAnswer>) {
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
    fn note_counter(&mut self, lane: Lane, in_hand: &InHand, answer: &AccountAnswer, now: Instant) {
        let account = in_hand.account();
        let Some(ceilings) = (self.options.ceilings)(account) else {
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

    fn on_verdict(
        &mut self,
        attempt: Try,
        verdict: Verdict,
        admitted: &mut Vec<Try>,
        over: &mut Vec<InHand>,
    ) {
        match verdict {
            Verdict::Admitted { possible_duplicate } => {
                if possible_duplicate {
                    self.world.telemetry.duplicate(DuplicateKind::Possible);
                }
                admitted.push(attempt);
            }
            Verdict::Shed(Limit::Lane) => {
                self.give_back(&attempt.in_hand);
                over.push(attempt.in_hand);
            }
            Verdict::Shed(limit) => {
                self.give_back(&attempt.in_hand);
                self.depart(attempt.in_hand, Departure::Shed(limit));
            }
            Verdict::Duplicate(record) => {
                self.give_back(&attempt.in_hand);
                self.world.telemetry.duplicate(DuplicateKind::Prevented);
                let sent_at = i64::try_from(record.at_ms)
                    .ok()
                    .and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
                let settled_at = sent_at.unwrap_or_else(|| self.world.clock.now());
                let mut settlement =
                    Settlement::of(attempt.in_hand, Outcome::Dispatched, settled_at);
                settlement.carrier = Some(record.carrier);
                settlement.carrier_ref = record.carrier_ref;
                settlement.repeated = true;
                let _ = self.outlets.settle.send(settlement);
            }
        }
    }

    fn start(&mut self, admitted: Vec<Try>) {
        if admitted.is_empty() {
            return;
        }
        let (wall, now) = (self.world.clock.now(), Instant::now());
        for attempt in &admitted {
            let in_hand = &attempt.in_hand;
            self.world
                .telemetry
                .waited(in_hand.lane(), in_hand.waited(wall, now));
        }
        let (fleet, telemetry) = (Arc::clone(&self.world.fleet), self.world.telemetry.clone());
        self.work
            .spawn(send_all(fleet, admitted, telemetry, self.events.clone()));
    }

    fn give_back(&mut self, in_hand: &InHand) {
        self.slots[in_hand.carrier].give_back(in_hand.lane());
        if in_hand.is_trial {
            self.breakers[in_hand.carrier].trial_withdrawn(Instant::now());
        }
    }

    fn on_finished(&mut self, finished: Vec<Finished>) {
        let now = Instant::now();
        for one in &finished {
            let in_hand = &one.attempt.in_hand;
            self.slots[in_hand.carrier].give_back(in_hand.lane());
            self.breakers[in_hand.carrier].record(now, reached(&one.result));
        }
        let _ = self.outlets.record.send(finished);
    }

    /// A failed try waits here when the wait is short and not many do, else in the parking queue.
    fn on_try_again(&mut self, again: TryAgain) {
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

    /// Sends back what is over its ceiling and not held, no faster than its pace.
    fn shed_surplus(&mut self, now: Instant) {
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

    fn keep_house(&mut self, now: Instant) {
        for lane in Lane::ALL {
            self.world.telemetry.in_flight(lane, self.in_flight(lane));
        }
        if now < self.next_housekeeping {
            return;
        }
        self.next_housekeeping = now + HOUSEKEEPING;
        self.reached.sweep(now);
        for lane in Lane::ALL {
            let queue = &mut self.queues[lane.index()];
            let broker = &self.world.broker;
            queue.forget(|receipt| broker.is_live(receipt));
            let retrying = self
                .retrying
                .iter()
                .filter(|job| job.lane() == lane)
                .map(|job| job.received_at)
                .min();
            let oldest = queue.oldest().into_iter().chain(retrying).min();
            self.world.telemetry.oldest(
                lane,
                oldest.map_or(Duration::ZERO, |oldest| now.duration_since(oldest)),
            );
        }
    }
}

/// Where an account stands in a lane. A ceiling of zero is always reached.
fn standing(
    options: &PipelineOptions,
    reached: &ReachedCeilings,
    lane: Lane,
    account: &AccountId,
    now: Instant,
) -> Standing {
    let ceiling = (options.ceilings)(account).map_or(0, |ceilings| ceilings.of_lane(lane));
    let reached_until = if ceiling == 0 {
        Some(now + NO_WINDOW)
    } else {
        reached.get(lane, account, now).map(|reached| reached.until)
    };
    Standing {
        ceiling,
        reached_until,
    }
}
