//! The dispatcher: decides which job is next, and never does the work itself.
//!
//! One task owns all of its state. It receives deliveries and the results of what it has started,
//! and after each it takes as many jobs as there are free slots, asks the meter about them in one
//! go, and starts what is admitted. Only receiving can be interrupted.

mod answers;
mod arrive;
mod back;
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
use super::ports::{AccountAnswer, Broker, Carrier, Clock, Delivery, Meter};
use super::record::TryAgain;
use super::send::Finished;
use super::settle::Settlement;
use super::slots::Slots;
use super::waiting::Waiting;
use crate::carrier::breaker::Breaker;
use crate::domain::{AccountId, Lane, Outcome};
use crate::telemetry::Telemetry;

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
    /// Jobs whose carrier is out, on their way to the parking queue at the pace of sheds.
    parking: [VecDeque<InHand>; 2],
    pauses: Pauses,
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
            parking: Default::default(),
            pauses: Pauses::default(),
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
        let paced = Lane::ALL.into_iter().filter(|lane| self.has_surplus(*lane));
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
        self.park(now);
        self.take(now);
        self.shed_surplus(now);
        self.keep_house(now);
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
        for queue in &mut self.queues {
            let broker = &self.world.broker;
            queue.forget(|receipt| broker.is_live(receipt));
        }
        for lane in Lane::ALL {
            self.world.telemetry.oldest(lane, self.oldest(lane, now));
        }
    }

    /// The age of the oldest job of a lane that waits in this worker.
    fn oldest(&self, lane: Lane, now: Instant) -> Duration {
        let wall = self.world.clock.now();
        let departing = self.waiting.iter().filter_map(|left| match left {
            Departing::Job(in_hand, _) => Some(in_hand),
            Departing::Dead(_) => None,
        });
        self.queues[lane.index()]
            .firsts()
            .chain(&self.parking[lane.index()])
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
