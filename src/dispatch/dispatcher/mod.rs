//! The dispatcher: decides which job is next, and never does the work itself.
//!
//! One task owns all of its state. It receives deliveries and the results of what it has started,
//! and after each it takes as many jobs as there are free slots, asks the meter about them in one
//! go, and starts what is admitted. Only receiving can be interrupted.

mod answers;
mod arrive;
mod ask;
mod back;
mod census;
mod lanes;
mod pressed;
mod take;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::ceilings::ReachedCeilings;
use super::depart::{Departing, StillHere};
use super::fleet::Fleet;
use super::in_hand::{Departure, InHand, Try};
use super::lane_queue::{HoldLimits, LaneQueue, Standing};
use super::options::PipelineOptions;
use super::pace::Pace;
use super::pauses::Pauses;
use super::ports::{
    AccountAnswer, Broker, Carrier, Clock, Delivery, Meter, Records, RecordsError, TryId,
};
use super::pressure::Pressure;
use super::record::TryAgain;
use super::send::{Ending, Finished};
use super::settle::{LedgerKeepsUp, Settlement, Unsent};
use super::slots::Slots;
use super::waiting::Waiting;
use crate::carrier::breaker::Breaker;
use crate::domain::{AccountId, Lane, Outcome};
use crate::gates::TurnedAway;
use crate::telemetry::Telemetry;
use ask::caps_of;
pub(crate) use ask::{facts_of_each, job_request};
use lanes::Lanes;

/// How long after the broker would not take a job back its fate is decided anew.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);
/// How often ages are measured and what has ended is swept out.
const HOUSEKEEPING: Duration = Duration::from_secs(1);
/// How many jobs a second go over to their accounts' own queues by the delay queue at most: it returns
/// about 7,000 (two cores, RabbitMQ 3.10).
const MOVES_PER_SECOND: u32 = 5_000;
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
        /// What the gates did not let pass.
        turned: Vec<(InHand, TurnedAway)>,
        /// What the records cannot be asked about.
        unaskable: Vec<InHand>,
    },
    /// The records have not answered.
    Unchecked {
        lane: Lane,
        jobs: Vec<InHand>,
        why: RecordsError,
    },
    /// The records answer again.
    RecordsBack,
    /// The ledger keeps up, or does not.
    Ledger(LedgerKeepsUp),
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

impl From<LedgerKeepsUp> for Event {
    fn from(keeps_up: LedgerKeepsUp) -> Self {
        Self::Ledger(keeps_up)
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
pub(super) struct World<B, M, C, K, R> {
    pub broker: Arc<B>,
    pub meter: Arc<M>,
    pub fleet: Arc<Fleet<C>>,
    pub clock: Arc<K>,
    pub records: Arc<R>,
    pub telemetry: Telemetry,
}

pub(super) struct Dispatcher<B, M, C, K, R> {
    world: World<B, M, C, K, R>,
    options: PipelineOptions,
    outlets: Outlets,
    events: mpsc::UnboundedSender<Event>,
    queues: [LaneQueue; 2],
    reached: ReachedCeilings,
    slots: Vec<Slots>,
    breakers: Vec<Breaker>,
    paces: [Pace; 2],
    /// The pace of jobs that go over to their accounts' own queues, or have been held too long of them.
    moves: [Pace; 2],
    /// Jobs whose carrier is out, on their way to the parking queue at the pace of sheds.
    parking: [VecDeque<InHand>; 2],
    /// Jobs of a closed lane that came by the queue of an open one, on their way to their own.
    astray: [VecDeque<InHand>; 2],
    pauses: Pauses,
    /// Nobody's where nobody wants to know.
    pressures: Option<[Pressure; 2]>,
    waiting: Waiting<Departing>,
    retrying: Waiting<InHand>,
    lanes: Lanes,
    /// Jobs that were tried here, of lanes that have been closed since.
    stranded: Vec<InHand>,
    asking: [usize; 2],
    work: JoinSet<()>,
    next_try: u64,
    stopping: bool,
    next_housekeeping: Instant,
}

impl<B: Broker, M: Meter, C: Carrier, K: Clock, R: Records> Dispatcher<B, M, C, K, R> {
    pub fn new(
        world: World<B, M, C, K, R>,
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
        for carrier in world.fleet.iter() {
            world.telemetry.carrier_opened(&carrier.name);
        }
        Self {
            queues: [LaneQueue::new(holds), LaneQueue::new(HoldLimits::NONE)],
            reached: ReachedCeilings::default(),
            slots,
            breakers,
            paces: options
                .sheds_per_second
                .map(|count| Pace::per_second(count, now)),
            moves: [(); 2].map(|()| Pace::per_second(MOVES_PER_SECOND, now)),
            parking: Default::default(),
            astray: Default::default(),
            pauses: Pauses::default(),
            pressures: options.pressure.as_ref().map(|watch| {
                let sheds = options.sheds_per_second;
                sheds.map(|count| Pressure::new(watch.options, count, now))
            }),
            waiting: Waiting::new(),
            retrying: Waiting::new(),
            lanes: Lanes::open(),
            stranded: Vec::new(),
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
        self.open_when_records_answer();
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
        let sheds = Lane::ALL
            .into_iter()
            .filter_map(|lane| self.next_shed(lane));
        openings
            .chain(sheds)
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
                turned,
                unaskable,
            } => {
                self.bury_unaskable(unaskable);
                self.on_answers(lane, tries, answers, turned);
            }
            Event::Unchecked { lane, jobs, why } => self.on_unchecked(lane, jobs, why),
            Event::RecordsBack => self.on_records_back(),
            Event::Ledger(LedgerKeepsUp(keeps_up)) => self.on_ledger(keeps_up),
            Event::Finished(finished) => self.on_finished(finished),
            Event::TryAgain(again) => self.on_try_again(again),
            Event::StillHere(StillHere(left)) => self
                .waiting
                .until(Instant::now() + PAUSE_AFTER_FAILURE, left),
        }
    }

    fn settle(&mut self, in_hand: InHand, outcome: Outcome) {
        self.settle_as(in_hand, Unsent::of(outcome));
    }

    /// A job ends unsent. One that was tried before, or that an API server has admitted, may be
    /// counted by frequency caps: these are told first.
    fn settle_as(&mut self, mut in_hand: InHand, end: Unsent) {
        if in_hand.may_be_counted() && in_hand.caps.is_empty() {
            let policy = (self.options.policy)(in_hand.account());
            let caps = policy.map(|policy| caps_of(&in_hand.job, &policy));
            let caps = caps.into_iter().flatten();
            in_hand.caps = caps.map(|cap| cap.key).collect();
        }
        if in_hand.caps.is_empty() {
            let settlement = Settlement::unsent(in_hand, end, self.world.clock.now());
            let _ = self.outlets.settle.send(settlement);
        } else {
            self.next_try = self.next_try.wrapping_add(1);
            let attempt = Try {
                in_hand,
                try_id: TryId(self.next_try),
            };
            let result = Ending::Unsent(end);
            let _ = self.outlets.record.send(vec![Finished { attempt, result }]);
        }
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
        self.park(now);
        self.send_on(now);
        self.take(now);
        self.tell_pressed(now);
        self.keep_house(now);
        self.shed_surplus(now);
    }

    fn depart(&self, in_hand: InHand, why: Departure) {
        let _ = self.outlets.depart.send(Departing::Job(in_hand, why));
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
        self.pauses.sweep(now);
        self.shed_overstayed(now);
        self.tell_held_of_own();
        let broker = &self.world.broker;
        for queue in &mut self.queues {
            queue.forget(|receipt| broker.is_live(receipt));
        }
        self.stranded.retain(|job| broker.is_live(&job.receipt));
        for lane in Lane::ALL {
            self.world.telemetry.oldest(lane, self.oldest(lane, now));
        }
        self.tell_what_is_in_hand(now);
    }

    /// The age of the oldest job of a lane that waits in this worker.
    fn oldest(&self, lane: Lane, now: Instant) -> Duration {
        let wall = self.world.clock.now();
        let departing = self.waiting.iter().filter_map(|left| match left {
            Departing::Job(in_hand, _) => Some(in_hand),
            Departing::Dead(_) => None,
        });
        self.queues[lane.index()]
            .standing()
            .map(|(first, _)| first)
            .chain(&self.parking[lane.index()])
            .chain(&self.astray[lane.index()])
            .chain(
                self.retrying
                    .iter()
                    .chain(departing)
                    .filter(|job| job.lane() == lane),
            )
            .map(|job| job.waited(wall, now))
            .max()
            .unwrap_or_default()
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
    let ceiling = options
        .ceilings(account)
        .map_or(0, |ceilings| ceilings.of_lane(lane));
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
