//! The outside world of a simulated run: it works, is slow, fails, or works without saying so, and
//! it writes down what it sees.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use fastrand::Rng;
use jiff::Timestamp;
use tokio::time::{Instant, sleep};

use super::plan::{Kind, Plan};
use crate::dispatch::ports::{
    Accepted, AccountRequest, Broker, Carrier, Clock, Conclusion, DeadLetter, Ended, EventBatch,
    Facts, Inquiry, PublishError, Receipt, Records, RecordsError, Requeue, SendError, SendVerdict,
    WaitingJob,
};
use crate::domain::{AccountId, Ceilings, Job, Lane, Verdict};
use crate::embedded::{MemoryRecords, Session};
use crate::meter::{CounterStore, MemoryStore, StoreAnswer, StoreError};

/// How long after a carrier's wish calls that were under way may still come.
const SLACK: Duration = Duration::from_millis(100);

/// How long after a look-up began a job may still reach its carrier.
const LOOK_UP_HOLDS: Duration = Duration::from_millis(150);

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

/// A broker session whose publishes may fail.
pub struct UnsureBroker {
    pub session: Arc<Session>,
    pub outside: Outside,
}

impl UnsureBroker {
    /// Runs a publish, unless it fails, and loses its answer now and then.
    async fn publish<T>(
        &self,
        items: Vec<T>,
        publish: impl AsyncFnOnce(Vec<T>) -> Vec<Result<(), PublishError>>,
    ) -> Vec<Result<(), PublishError>> {
        self.outside.pass(30).await;
        let faults = self.outside.plan.faults;
        if self.outside.happens(faults.publish_fails) {
            return items
                .iter()
                .map(|_| Err(PublishError::Disconnected))
                .collect();
        }
        let results = publish(items).await;
        self.outside.pass(5).await;
        if self.outside.happens(faults.publish_reply_lost) {
            return results
                .iter()
                .map(|_| Err(PublishError::TimedOut))
                .collect();
        }
        results
    }
}

impl Broker for UnsureBroker {
    async fn requeue(&self, jobs: Vec<Requeue>) -> Vec<Result<(), PublishError>> {
        for job in &jobs {
            self.outside
                .seen()
                .ready
                .values_mut()
                .for_each(|ready| drop(ready.remove(job.id.as_str())));
        }
        self.publish(jobs, async |jobs| self.session.requeue(jobs).await)
            .await
    }

    async fn bury(&self, letters: Vec<DeadLetter>) -> Vec<Result<(), PublishError>> {
        self.publish(letters, async |letters| self.session.bury(letters).await)
            .await
    }

    async fn announce(&self, batches: Vec<EventBatch>) -> Vec<Result<(), PublishError>> {
        self.publish(batches, async |batches| {
            self.session.announce(batches).await
        })
        .await
    }

    fn take(&self, lane: Lane, taking: bool) {
        self.session.take(lane, taking);
    }

    fn give_back(&self, receipts: Vec<Receipt>) {
        self.session.give_back(receipts);
    }

    fn acknowledge(&self, receipts: Vec<Receipt>) {
        self.session.acknowledge(receipts);
    }

    fn is_live(&self, receipt: &Receipt) -> bool {
        self.session.is_live(receipt)
    }
}

/// The store of counters that all workers share, as one worker reaches it.
pub struct UnsureStore {
    pub store: MemoryStore,
    pub outside: Outside,
    pub worker: usize,
}

impl UnsureStore {
    async fn fate(&self) -> Result<(), StoreError> {
        self.outside.pass(2).await;
        if self.outside.is_within(&self.outside.plan.outages) {
            self.outside.pass(60).await;
            return Err(StoreError::Unreachable);
        }
        if self.outside.happens(self.outside.plan.faults.store_fails) {
            return Err(StoreError::Failed);
        }
        Ok(())
    }

    fn note(&self, requests: &[AccountRequest], answers: &[Result<StoreAnswer, StoreError>]) {
        let mut seen = self.outside.seen();
        let now = Instant::now();
        for (request, answer) in requests.iter().zip(answers) {
            let Ok(answer) = answer else { continue };
            for (job, verdict) in request.jobs.iter().zip(&answer.verdicts) {
                if matches!(verdict, Verdict::Admitted { .. }) {
                    let account = request.account.clone();
                    seen.admissions.push(Admission {
                        at: now,
                        account,
                        lane: job.lane,
                    });
                    seen.admitted_at.insert(job.id.to_string(), now);
                }
            }
        }
    }
}

impl CounterStore for UnsureStore {
    async fn admit(&self, requests: &[AccountRequest]) -> Vec<Result<StoreAnswer, StoreError>> {
        if !self.outside.plan.records {
            for lane in Lane::ALL {
                let jobs = requests.iter().flat_map(|request| &request.jobs);
                let mut ids = jobs
                    .filter(|job| job.lane == lane)
                    .map(|job| job.id.as_str())
                    .peekable();
                if ids.peek().is_some() {
                    self.outside.check_order(self.worker, lane, ids);
                }
            }
        }
        if let Err(error) = self.fate().await {
            return requests.iter().map(|_| Err(error)).collect();
        }
        let answers = self.store.admit(requests).await;
        self.note(requests, &answers);
        self.outside.pass(2).await;
        if self
            .outside
            .happens(self.outside.plan.faults.store_reply_lost)
        {
            return requests.iter().map(|_| Err(StoreError::TimedOut)).collect();
        }
        answers
    }

    async fn conclude(&self, conclusions: &[Conclusion]) -> Result<(), StoreError> {
        self.fate().await?;
        self.store.conclude(conclusions).await
    }

    async fn probe(&self) -> Result<(), StoreError> {
        self.fate().await
    }
}

/// The carrier, as one worker reaches it.
pub struct UnsureCarrier {
    pub outside: Outside,
    pub worker: usize,
}

struct InFlight<'a>(&'a UnsureCarrier, Lane);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        *self
            .0
            .outside
            .seen()
            .in_flight
            .entry((self.0.worker, self.1))
            .or_default() -= 1;
    }
}

/// Rule 8: a job goes out only if its look-up has just been made, and began before any opt-out.
fn is_checked(looked_up: Option<Instant>, outside: &Outside, job: &Job, now: Instant) -> bool {
    let opt_out = outside.opt_out_of(job.head.id.as_str());
    looked_up.is_some_and(|began| {
        now.duration_since(began) <= LOOK_UP_HOLDS && opt_out.is_none_or(|at| began < at)
    })
}

/// The records, as one worker reaches them.
pub struct UnsureRecords {
    pub records: MemoryRecords,
    pub worker: usize,
    pub outside: Outside,
}

impl UnsureRecords {
    async fn fate(&self) -> Result<(), RecordsError> {
        self.outside.pass(5).await;
        if self.outside.is_within(&self.outside.plan.records_outages) {
            self.outside.pass(100).await;
            return Err(RecordsError::Unreachable);
        }
        if self.outside.happens(self.outside.plan.faults.records_fail) {
            return Err(RecordsError::Failed);
        }
        Ok(())
    }

    async fn answer<T>(&self, answer: Result<T, RecordsError>) -> Result<T, RecordsError> {
        self.outside.pass(5).await;
        let lost = self.outside.plan.faults.records_reply_lost;
        if self.outside.happens(lost) {
            return Err(RecordsError::TimedOut);
        }
        answer
    }
}

impl Records for UnsureRecords {
    fn exist(&self) -> bool {
        self.outside.plan.records
    }

    async fn facts(&self, inquiries: &[Inquiry<'_>]) -> Result<Vec<Facts>, RecordsError> {
        // All of one lane: it is asked for before it is known what the answer will be.
        let ids = inquiries.iter().map(|one| one.id.as_str());
        let first = inquiries[0].id.as_str().parse::<usize>().unwrap();
        let lane = self.outside.plan.jobs[first].lane;
        self.outside.check_order(self.worker, lane, ids);
        self.fate().await?;
        let began = Instant::now();
        let facts = self.records.facts(inquiries).await;
        let facts = self.answer(facts).await?;
        let mut seen = self.outside.seen();
        for one in inquiries {
            seen.looked_up.insert(one.id.to_string(), began);
        }
        Ok(facts)
    }

    async fn keep(&self, jobs: &[WaitingJob]) -> Result<(), RecordsError> {
        self.fate().await?;
        let kept = self.records.keep(jobs).await;
        self.answer(kept).await
    }

    async fn write(&self, ended: &[Ended]) -> Result<(), RecordsError> {
        self.fate().await?;
        let written = self.records.write(ended).await;
        self.answer(written).await
    }

    async fn probe(&self) -> Result<(), RecordsError> {
        self.fate().await
    }
}

impl UnsureCarrier {
    fn enter(&self, job: &Job) -> InFlight<'_> {
        let mut seen = self.outside.seen();
        let lane = job.lane();
        *seen.in_flight.entry((self.worker, lane)).or_default() += 1;
        let of = |lane| {
            seen.in_flight
                .get(&(self.worker, lane))
                .copied()
                .unwrap_or(0)
        };
        let (transactional, marketing) = (of(Lane::Transactional), of(Lane::Marketing));
        let slots = self.outside.plan.slots;
        if transactional + marketing > slots || marketing > slots - slots.div_ceil(5) {
            seen.overfull
                .push(format!("{transactional} + {marketing} of {slots}"));
        }
        let now = Instant::now();
        let wait = seen
            .waits
            .get(&(self.worker, job.head.account.clone(), lane));
        if wait.is_some_and(|(from, until)| now > *from + SLACK && now < *until) {
            seen.impatient.push(job.head.id.to_string());
        }
        if let Some(admitted) = seen.admitted_at.get(job.head.id.as_str()) {
            let wait = admitted.elapsed();
            seen.latest_start = seen.latest_start.max(wait);
        }
        let looked_up = seen.looked_up.get(job.head.id.as_str()).copied();
        if self.outside.plan.records && !is_checked(looked_up, &self.outside, job, now) {
            seen.unchecked.push(job.head.id.to_string());
        }
        drop(seen);
        InFlight(self, lane)
    }

    fn write_down(&self, job: &Job, attempt: u32, accepted: bool) {
        let id = job.head.id.to_string();
        let (account, lane, at) = (job.head.account.clone(), job.lane(), Instant::now());
        self.outside.seen().calls.push(Call {
            at,
            account,
            id,
            lane,
            attempt,
            accepted,
        });
    }
}

impl UnsureCarrier {
    /// Refuses a job for now, and now and then says for how long.
    fn throttle(&self, job: &Job) -> Result<Accepted, SendError> {
        let wait = Duration::from_millis(self.outside.rng.lock().unwrap().u64(0..8_000));
        if wait > Duration::from_secs(2) {
            let now = Instant::now();
            let key = (self.worker, job.head.account.clone(), job.lane());
            let mut seen = self.outside.seen();
            let known = seen.waits.entry(key).or_insert((now, now + wait));
            // A wait that goes on from an earlier one has been known for as long as that.
            let from = if known.1 > now { known.0 } else { now };
            *known = (from, known.1.max(now + wait));
        }
        Err(SendError {
            verdict: SendVerdict::Throttled,
            retry_after: Some(wait),
            detail: "simulated".into(),
        })
    }
}

fn error(verdict: SendVerdict) -> Result<Accepted, SendError> {
    Err(SendError {
        verdict,
        retry_after: None,
        detail: "simulated".into(),
    })
}

impl Carrier for UnsureCarrier {
    async fn send(&self, job: &Job, attempt: u32) -> Result<Accepted, SendError> {
        let _in_flight = self.enter(job);
        let faults = self.outside.plan.faults;
        let fate = |percent| self.outside.happens(percent);
        let rejected = self.outside.kind_of(job.head.id.as_str()) == Kind::Rejected;
        let (fails, lost, hangs) = (
            fate(faults.carrier_fails)
                || self.outside.is_within(&self.outside.plan.carrier_outages),
            fate(faults.carrier_reply_lost),
            fate(faults.carrier_hangs),
        );
        self.write_down(job, attempt, !rejected && (lost || !fails && !hangs));
        if hangs {
            std::future::pending::<()>().await;
        }
        self.outside.pass(self.outside.plan.carrier_ms).await;
        match (rejected, lost, fails) {
            (true, ..) => error(SendVerdict::Rejected),
            (_, true, _) => error(SendVerdict::Unknown),
            (.., true) if self.outside.happens(30) => self.throttle(job),
            (.., true) => error(SendVerdict::NotSent),
            _ => Ok(Accepted {
                carrier_ref: Some("ref".into()),
            }),
        }
    }
}
