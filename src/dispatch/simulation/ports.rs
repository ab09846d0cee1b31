//! The outside world of a simulated run: it works, is slow, fails, or works without saying so, and
//! it writes down what it sees.

mod broker;
mod carrier;
mod records;
mod store;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use fastrand::Rng;
use jiff::Timestamp;
use tokio::time::{Instant, sleep};

use super::plan::{Kind, Plan};
use crate::dispatch::ports::Clock;
use crate::domain::{AccountId, Ceilings, Lane};
pub use broker::UnsureBroker;
pub use carrier::UnsureCarrier;
pub use records::UnsureRecords;
pub use store::UnsureStore;

/// How long the outside misbehaves; then whatever is left must come to its end.
const FAULTY: Duration = Duration::from_secs(10);

/// One admission by the shared counter.
#[derive(Debug, Clone)]
pub struct Admission {
    pub at: Instant,
    pub account: AccountId,
    pub lane: Lane,
}

/// One call of a carrier.
#[derive(Debug, Clone)]
pub struct Call {
    pub at: Instant,
    pub account: AccountId,
    pub id: String,
    pub lane: Lane,
    pub attempt: u32,
    pub accepted: bool,
}

/// What the outside world has seen.
#[derive(Debug, Default)]
pub struct Seen {
    pub admissions: Vec<Admission>,
    pub calls: Vec<Call>,
    pub admitted_at: HashMap<String, Instant>,
    pub latest_start: Duration,
    pub in_flight: HashMap<(usize, Lane), usize>,
    pub overfull: Vec<String>,
    /// Transactional jobs delivered to a worker and not yet asked about.
    pub ready: HashMap<usize, HashMap<String, (AccountId, Instant)>>,
    pub out_of_order: Vec<String>,
    /// Whom the carrier has asked to wait, and from when until when.
    pub waits: HashMap<(usize, AccountId, Lane), (Instant, Instant)>,
    pub impatient: Vec<String>,
    /// When the last look-up of a job began that had an answer.
    pub looked_up: HashMap<String, Instant>,
    /// Jobs that a carrier was asked to send whose last look-up was missing, old or too late.
    pub unchecked: Vec<String>,
}

/// Shared by all ports of a run.
#[derive(Clone)]
pub struct Outside {
    pub plan: Arc<Plan>,
    pub seen: Arc<Mutex<Seen>>,
    rng: Arc<Mutex<Rng>>,
    pub started: Instant,
}

impl Outside {
    pub fn new(plan: Arc<Plan>) -> Self {
        let rng = Arc::new(Mutex::new(Rng::with_seed(plan.seed ^ 0x5eed)));
        Self {
            plan,
            seen: Arc::default(),
            rng,
            started: Instant::now(),
        }
    }

    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap()
    }

    fn happens(&self, percent: u8) -> bool {
        percent > 0
            && self.started.elapsed() < FAULTY
            && self.rng.lock().unwrap().u8(0..100) < percent
    }

    fn is_within(&self, outages: &[(Duration, Duration)]) -> bool {
        let now = self.started.elapsed();
        outages.iter().any(|(from, to)| (*from..*to).contains(&now))
    }

    async fn pass(&self, most_ms: u64) {
        let micros = self.rng.lock().unwrap().u64(0..=most_ms * 1000);
        sleep(Duration::from_micros(micros)).await;
    }

    /// The ceilings of a simulated account.
    pub fn ceilings(&self, account: &AccountId) -> Ceilings {
        let place = account
            .as_str()
            .trim_start_matches('a')
            .parse::<usize>()
            .unwrap();
        self.plan.ceilings[place]
    }

    /// When a job's recipient has opted out, if it does.
    fn opt_out_of(&self, id: &str) -> Option<Instant> {
        let job = &self.plan.jobs[id.parse::<usize>().ok()?];
        match job.kind {
            Kind::OptedOut => Some(self.started),
            Kind::OptsOut => Some(self.started + job.at + Duration::from_secs(1)),
            _ => None,
        }
    }

    fn kind_of(&self, id: &str) -> Kind {
        id.parse::<usize>()
            .ok()
            .map_or(Kind::Plain, |place| self.plan.jobs[place].kind)
    }

    /// Rule 6: `worker` asks about jobs of one lane; marketing only when no transactional job is
    /// ready there. One whose account has had fewer admissions in the last second (and the time that
    /// answers take) than its ceiling cannot be held.
    fn check_order<'a>(&self, worker: usize, lane: Lane, ids: impl Iterator<Item = &'a str>) {
        let now = Instant::now();
        let mut seen = self.seen();
        let seen = &mut *seen;
        let ready = seen.ready.entry(worker).or_default();
        if lane == Lane::Transactional {
            ids.for_each(|id| drop(ready.remove(id)));
            return;
        }
        let long_ready = |since: &Instant| now.duration_since(*since) > Duration::from_millis(5);
        let open = |account: &AccountId| {
            let recent = seen
                .admissions
                .iter()
                .rev()
                .take_while(|admission| admission.at.elapsed() <= Duration::from_millis(1050));
            let used = recent
                .filter(|admission| admission.account == *account)
                .count();
            used < self.ceilings(account).of_lane(Lane::Transactional) as usize
        };
        let overlooked = ready
            .iter()
            .find(|(_, (account, since))| long_ready(since) && open(account));
        seen.out_of_order
            .extend(overlooked.map(|(id, (account, since))| {
            format!(
                "marketing was asked for at {:?} while job {id} of {account} was ready for {:?}",
                self.started.elapsed(),
                since.elapsed()
            )
        }));
    }
}

/// Wall time that follows the runtime's paused clock.
pub struct SimulatedClock(pub Outside);

impl Clock for SimulatedClock {
    fn now(&self) -> Timestamp {
        wall(self.0.started.elapsed())
    }
}

/// The wall time so long after the start of a run.
pub fn wall(after: Duration) -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap() + after
}
