//! The scenario on paused time: with the real meter every rule holds, and each way in which a meter
//! can be broken breaks its rule.

use std::future::pending;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::play::{Ending, play};
use super::rules::judge;
use super::scenario::Scenario;
use super::stage::{Cast, Stage, defaults};
use super::tally::Second;
use super::{promises, telling};
use crate::clock::SystemClock;
use crate::dispatch::ports::{AccountAnswer, AccountRequest, Conclusion, Meter};
use crate::domain::{Budget, Ceilings, Lane, Limit, Reserve, Verdict};
use crate::meter::{Failover, FailoverOptions, MemoryStore};
use crate::telemetry::Telemetry;

const USUAL: Scenario = Scenario {
    seconds: 4,
    campaign: 250,
    passwords: 15,
};

fn cast(budget: u64, reserve: u64, seed: u64) -> Cast {
    Cast {
        workers: 2,
        ceilings: Ceilings::of(
            Budget::per_second(budget).unwrap(),
            Reserve::percent(reserve).unwrap(),
        ),
        seed,
    }
}

/// A play, and its seconds.
async fn watch(stage: Stage, scenario: Scenario) -> (Ending, Vec<Second>) {
    let mut seconds = Vec::new();
    let most = scenario.seconds + 3;
    let ending = play(stage, scenario.offers(), most, pending(), |second| {
        seconds.push(second.clone());
        Ok(())
    });
    (ending.await.unwrap(), seconds)
}

/// The rules that were broken, and those that were not put to the test.
fn faults(cast: Cast, scenario: Scenario, ending: &Ending) -> [Vec<&'static str>; 2] {
    let rules = judge(&promises(scenario, cast.ceilings), ending);
    [Some(false), None].map(|verdict| {
        let such = rules.iter().filter(|rule| rule.held == verdict);
        such.map(|rule| rule.name).collect()
    })
}

const NONE: [Vec<&str>; 2] = [Vec::new(), Vec::new()];

#[tokio::test(start_paused = true)]
async fn the_worked_example_keeps_every_rule() {
    for seed in 0..5 {
        let cast = cast(100, 20, seed);
        let (ending, seconds) = watch(Stage::open(cast).unwrap(), USUAL).await;
        assert_eq!(faults(cast, USUAL, &ending), NONE, "{ending:?}");
        let (t, m) = (Lane::Transactional.index(), Lane::Marketing.index());
        let dispatched: Vec<_> = seconds.iter().map(|second| second.dispatched).collect();
        // Less than 80 where passwords were counted before the campaign had its 80.
        let campaign: Vec<_> = dispatched.iter().map(|second| second[m]).collect();
        assert_eq!(campaign, [80, 75, 75, 75, 80, 80, 80], "{dispatched:?}");
        let passwords: Vec<_> = dispatched.iter().map(|second| second[t]).collect();
        assert_eq!(passwords, [0, 15, 15, 15, 0, 0, 0]);
        assert_eq!(ending.record.offered, [45, 1_000]);
        assert_eq!(ending.record.waiting, [0, 1_000 - 4 * 80 - 3 * 75]);
        assert!(ending.record.by_worker.iter().all(|sent| *sent > 100));
        assert!(ending.sheds[m] >= 170);
        let slowest = ending.record.latency.unwrap().max;
        assert!(slowest < Duration::from_millis(50), "{slowest:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn odd_figures_keep_every_rule_that_they_promise() {
    let odd = [
        (0, 20, 250, 15, vec!["passwords"]),
        (100, 100, 250, 15, vec![]),
        (100, 0, 250, 15, vec!["passwords"]),
        (1, 20, 250, 0, vec![]),
        (3, 20, 250, 1, vec![]),
        (100, 20, 0, 100, vec![]),
        (100, 20, 0, 150, vec!["passwords"]),
        (100, 20, 0, 0, vec![]),
        (10_000, 20, 900, 60, vec![]),
    ];
    for (budget, reserve, campaign, passwords, untested) in odd {
        let cast = cast(budget, reserve, 1);
        let scenario = Scenario {
            seconds: 3,
            campaign,
            passwords,
        };
        let (ending, _) = watch(Stage::open(cast).unwrap(), scenario).await;
        let faults = faults(cast, scenario, &ending);
        assert_eq!(faults, [vec![], untested], "{scenario:?} {ending:?}");
        let told = telling::closing(scenario, cast.ceilings, &ending);
        assert!(told.lines().all(|line| line.chars().count() <= 80));
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_stops_it_sees_what_there_is() {
    let mut rows = 0;
    let cast = cast(100, 20, 1);
    let stage = Stage::open(cast).unwrap();
    let stop = sleep(Duration::from_millis(2_500));
    let ending = play(stage, USUAL.offers(), 60, stop, |_| {
        rows += 1;
        Ok(())
    });
    let ending = ending.await.unwrap();
    assert!(ending.interrupted);
    assert_eq!((rows, ending.lasted.as_millis()), (3, 2_500));
    assert_eq!(faults(cast, USUAL, &ending), NONE);
}

/// What is wrong with a meter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Admits everything, and says that there is room.
    NoCeilings,
    NoReserve,
    CountsSheds,
    /// Forgets its count twice a second.
    ShortWindows,
    ShedsPasswords,
    Hangs,
}

struct Faulty {
    fault: Fault,
    meters: [Failover<MemoryStore>; 2],
    started: Instant,
}

impl Faulty {
    fn request(&self, mut request: AccountRequest) -> AccountRequest {
        let ceilings = |budget: u32, reserve: u64| {
            let budget = Budget::per_second(budget.into()).unwrap();
            Ceilings::of(budget, Reserve::percent(reserve).unwrap())
        };
        let budget = request.ceilings.of_lane(Lane::Transactional);
        match self.fault {
            Fault::NoCeilings => request.ceilings = ceilings(10_000, 0),
            Fault::NoReserve => request.ceilings = ceilings(budget, 0),
            _ => {}
        }
        request
    }

    fn answer(&self, lane: Lane, mut answer: AccountAnswer) -> AccountAnswer {
        if self.fault == Fault::ShedsPasswords && lane == Lane::Transactional {
            answer.verdicts.fill(Verdict::Shed(Limit::Claim));
        }
        if self.fault == Fault::NoCeilings {
            answer.counter.count = 1;
        }
        if self.fault == Fault::CountsSheds {
            let shed = |verdict: &&Verdict| matches!(verdict, Verdict::Shed(_));
            let sheds = answer.verdicts.iter().filter(shed).count();
            answer.counter.count += u32::try_from(sheds).unwrap();
        }
        answer
    }

    fn meter(&self) -> &Failover<MemoryStore> {
        let halves = self.started.elapsed().as_millis() / 500;
        let second = self.fault == Fault::ShortWindows && halves % 2 == 1;
        &self.meters[usize::from(second)]
    }
}

impl Meter for Faulty {
    async fn admit(&self, requests: Vec<AccountRequest>) -> Vec<AccountAnswer> {
        let lane = requests[0].jobs[0].lane;
        if self.fault == Fault::Hangs && lane == Lane::Transactional {
            pending::<()>().await;
        }
        let requests = requests.into_iter().map(|request| self.request(request));
        let answers = self.meter().admit(requests.collect()).await;
        let answers = answers.into_iter();
        answers.map(|answer| self.answer(lane, answer)).collect()
    }

    async fn conclude(&self, conclusions: Vec<Conclusion>) {
        self.meter().conclude(conclusions).await;
    }
}

/// The rules that a faulty meter breaks in the worked example.
async fn broken_by(fault: Fault) -> Vec<&'static str> {
    let cast = cast(100, 20, 1);
    let clock = || std::sync::Arc::new(SystemClock);
    let stores = [(); 2].map(|()| MemoryStore::new(Duration::from_secs(900), clock()));
    let faulty = |telemetry: &Telemetry| Faulty {
        fault,
        meters: stores.clone().map(|store| {
            let options = FailoverOptions::default();
            Failover::new(store, options, clock(), telemetry.clone())
        }),
        started: Instant::now(),
    };
    let telemetry = Telemetry::unexported();
    let stage = Stage::open_with(cast, &defaults().unwrap(), telemetry, faulty).unwrap();
    let (ending, _) = watch(stage, USUAL).await;
    let [broken, _] = faults(cast, USUAL, &ending);
    broken
}

#[tokio::test(start_paused = true)]
async fn a_meter_without_ceilings_breaks_budget_and_reserve() {
    let broken = broken_by(Fault::NoCeilings).await;
    assert!(broken.starts_with(&["budget", "reserve"]), "{broken:?}");
}

#[tokio::test(start_paused = true)]
async fn a_meter_without_a_reserve_breaks_it() {
    let broken = broken_by(Fault::NoReserve).await;
    assert_eq!(broken.first(), Some(&"reserve"), "{broken:?}");
    assert!(!broken.contains(&"budget"));
}

#[tokio::test(start_paused = true)]
async fn a_meter_that_counts_sheds_is_found_out() {
    assert_eq!(broken_by(Fault::CountsSheds).await, ["sheds uncounted"]);
}

#[tokio::test(start_paused = true)]
async fn a_meter_with_short_windows_breaks_the_budget() {
    let broken = broken_by(Fault::ShortWindows).await;
    assert_eq!(broken.first(), Some(&"budget"), "{broken:?}");
}

#[tokio::test(start_paused = true)]
async fn passwords_that_do_not_leave_break_their_rule() {
    for fault in [Fault::ShedsPasswords, Fault::Hangs] {
        let broken = broken_by(fault).await;
        assert!(broken.contains(&"passwords"), "{fault:?} {broken:?}");
    }
}
