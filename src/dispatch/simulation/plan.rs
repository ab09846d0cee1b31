//! What one simulated run does, all of it drawn from a seed.

use std::time::Duration;

use fastrand::Rng;

use crate::domain::{Budget, Ceilings, Lane, Reserve};

/// How likely the outside world misbehaves, in percent per call.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faults {
    /// A publish fails.
    pub publish_fails: u8,
    /// A publish is carried out and reported as failed.
    pub publish_reply_lost: u8,
    /// A carrier does not take a job.
    pub carrier_fails: u8,
    /// A carrier takes a job and its answer is lost.
    pub carrier_reply_lost: u8,
    /// A carrier falls silent.
    pub carrier_hangs: u8,
    /// The store of counters fails.
    pub store_fails: u8,
    /// The store counts and its answer is lost.
    pub store_reply_lost: u8,
    /// The records fail.
    pub records_fail: u8,
    /// The records do what they are asked and their answer is lost.
    pub records_reply_lost: u8,
}

/// What happens to a worker at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blow {
    /// It dies.
    Kill,
    /// It is asked to stop, and another one starts.
    Stop,
    /// Its connection to the broker breaks.
    Sever,
}

/// A job to be published.
#[derive(Debug, Clone)]
pub struct PlannedJob {
    pub at: Duration,
    pub account: usize,
    pub lane: Lane,
    pub kind: Kind,
}

/// What is special about a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Plain,
    /// The carrier says no for good.
    Rejected,
    /// Its recipient is no number.
    Invalid,
    /// It is no job at all.
    Garbage,
    /// It stands in the other lane's queue.
    Misplaced,
    /// It is worthless two seconds after it was published.
    ShortLived,
    /// Its recipient has opted out, or does so a second after it was published.
    OptedOut,
    OptsOut,
    /// Its campaign is paused for the first three seconds.
    Paused,
    /// Its journey is cancelled.
    Cancelled,
    /// It is to be sent two seconds after it was published, and not before.
    Later,
}

impl Kind {
    /// Whether it takes a database to treat it rightly.
    pub fn needs_records(self) -> bool {
        matches!(
            self,
            Self::OptedOut | Self::OptsOut | Self::Paused | Self::Cancelled | Self::Later
        )
    }
}

/// One run.
#[derive(Debug, Clone)]
pub struct Plan {
    pub seed: u64,
    pub workers: usize,
    pub slots: usize,
    pub prefetch: usize,
    pub carrier_ms: u64,
    pub ceilings: Vec<Ceilings>,
    pub jobs: Vec<PlannedJob>,
    pub faults: Faults,
    pub blows: Vec<(Duration, usize, Blow)>,
    /// When the store of counters does not answer.
    pub outages: Vec<(Duration, Duration)>,
    /// Whether there is a database.
    pub records: bool,
    /// When it does not answer.
    pub records_outages: Vec<(Duration, Duration)>,
    /// When the carrier takes nothing.
    pub carrier_outages: Vec<(Duration, Duration)>,
}

/// The kinds of weather that runs are made in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weather {
    /// Nothing fails.
    Calm,
    /// Everything may fail but the counters.
    Rough,
    /// The counters fail too.
    Blind,
}

impl Plan {
    /// The run of a seed.
    pub fn draw(seed: u64, weather: Weather) -> Self {
        let mut rng = Rng::with_seed(seed);
        let accounts = rng.usize(1..=4);
        let ceilings: Vec<_> = (0..accounts).map(|_| draw_ceilings(&mut rng)).collect();
        let workers = rng.usize(1..=4);
        let seconds = rng.u64(1..=4);
        let records = rng.bool();
        let jobs = (0..rng.usize(1..=250))
            .map(|_| draw_job(&mut rng, accounts, seconds, weather, records))
            .collect();
        Self {
            seed,
            workers,
            slots: rng.usize(2..=40),
            prefetch: rng.usize(4..=80),
            carrier_ms: rng.u64(0..=200),
            ceilings,
            jobs,
            faults: draw_faults(&mut rng, weather),
            blows: draw_blows(&mut rng, weather, workers, seconds),
            outages: draw_outages(&mut rng, weather == Weather::Blind, seconds),
            carrier_outages: draw_outages(&mut rng, weather != Weather::Calm, seconds),
            records,
            records_outages: draw_outages(&mut rng, weather != Weather::Calm, seconds),
        }
    }
}

fn draw_ceilings(rng: &mut Rng) -> Ceilings {
    let budget = if rng.bool() {
        rng.u64(2..=10)
    } else {
        rng.u64(10..=120)
    };
    let reserve = [0, 20, 20, 20, 50][rng.usize(0..5)];
    Ceilings::of(
        Budget::per_second(budget).unwrap(),
        Reserve::percent(reserve).unwrap(),
    )
}

fn draw_job(
    rng: &mut Rng,
    accounts: usize,
    seconds: u64,
    weather: Weather,
    records: bool,
) -> PlannedJob {
    let kind = match rng.u8(0..40) {
        5 if records => Kind::OptedOut,
        6 if records => Kind::OptsOut,
        7 if records => Kind::Paused,
        8 if records => Kind::Cancelled,
        9 if records => Kind::Later,
        0 => Kind::Rejected,
        1 => Kind::Invalid,
        2 => Kind::Garbage,
        3 => Kind::Misplaced,
        4 if weather == Weather::Calm => Kind::ShortLived,
        _ => Kind::Plain,
    };
    PlannedJob {
        at: Duration::from_millis(if rng.bool() {
            0
        } else {
            rng.u64(0..seconds * 1000)
        }),
        account: rng.usize(0..accounts),
        lane: if rng.u8(0..3) == 0 {
            Lane::Transactional
        } else {
            Lane::Marketing
        },
        kind,
    }
}

fn draw_faults(rng: &mut Rng, weather: Weather) -> Faults {
    if weather == Weather::Calm {
        return Faults::default();
    }
    let mut draw = |most: u8| if rng.bool() { 0 } else { rng.u8(0..=most) };
    let blind = u8::from(weather == Weather::Blind);
    Faults {
        publish_fails: draw(20),
        publish_reply_lost: draw(10),
        carrier_fails: draw(30),
        carrier_reply_lost: draw(10),
        carrier_hangs: draw(5),
        store_fails: blind * draw(20),
        store_reply_lost: blind * draw(10),
        records_fail: draw(10),
        records_reply_lost: draw(5),
    }
}

fn draw_blows(
    rng: &mut Rng,
    weather: Weather,
    workers: usize,
    seconds: u64,
) -> Vec<(Duration, usize, Blow)> {
    let most = if weather == Weather::Calm { 0 } else { 5 };
    let mut blows: Vec<_> = (0..rng.usize(0..=most))
        .map(|_| {
            let at = Duration::from_millis(rng.u64(0..seconds * 2000));
            let blow = [Blow::Kill, Blow::Stop, Blow::Sever][rng.usize(0..3)];
            (at, rng.usize(0..workers), blow)
        })
        .collect();
    blows.sort_by_key(|(at, ..)| *at);
    blows
}

fn draw_outages(rng: &mut Rng, any: bool, seconds: u64) -> Vec<(Duration, Duration)> {
    let most = if any { 2 } else { 0 };
    (0..rng.usize(0..=most))
        .map(|_| {
            let from = Duration::from_millis(rng.u64(0..seconds * 2000));
            (from, from + Duration::from_millis(rng.u64(50..4000)))
        })
        .collect()
}

impl Plan {
    /// Rule 3's example.
    pub fn worked_example() -> Self {
        let every = |lane, per_second: u64, from: u64, to: u64| {
            (from * per_second..to * per_second).map(move |n| PlannedJob {
                at: Duration::from_micros(n * 1_000_000 / per_second),
                account: 0,
                lane,
                kind: Kind::Plain,
            })
        };
        Self {
            seed: 0,
            workers: 4,
            slots: 64,
            prefetch: 256,
            carrier_ms: 20,
            ceilings: vec![Ceilings::of(
                Budget::per_second(100).unwrap(),
                Reserve::percent(20).unwrap(),
            )],
            jobs: every(Lane::Marketing, 250, 0, 10)
                .chain(every(Lane::Transactional, 15, 1, 10))
                .collect(),
            faults: Faults::default(),
            blows: Vec::new(),
            outages: Vec::new(),
            carrier_outages: Vec::new(),
            records: false,
            records_outages: Vec::new(),
        }
    }
}
