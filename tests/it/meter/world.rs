//! What the meter's tests stand on: requests, stores, short words for verdicts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use lanekeeper::dispatch::ports::{
    AccountRequest, Clock, Conclusion, JobRequest, TryId, TryResult,
};
use lanekeeper::domain::{
    AccountId, Budget, Ceilings, Counter, JobId, Lane, Limit, Reserve, Verdict,
};
use lanekeeper::meter::{CounterStore, MemoryStore, RedisOptions, RedisStore};

use crate::support::redis_url;

pub use Lane::{Marketing, Transactional};

pub const PASSES: Verdict = Verdict::Admitted {
    possible_duplicate: false,
};
pub const MAYBE_TWICE: Verdict = Verdict::Admitted {
    possible_duplicate: true,
};
pub const OVER: Verdict = Verdict::Shed(Limit::Lane);
pub const CLAIMED: Verdict = Verdict::Shed(Limit::Claim);

pub struct WallClock;

impl Clock for WallClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

static NEXT: AtomicU64 = AtomicU64::new(1);

/// A number that no other call in this process gets.
pub fn number() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A key prefix that no other test run uses.
pub fn prefix() -> String {
    format!("test-{}-{}:", Timestamp::now().as_nanosecond(), number())
}

pub fn memory(claim_life: Duration) -> MemoryStore {
    MemoryStore::new(claim_life, Arc::new(WallClock))
}

/// Options for the shared server. Patient: these tests are about what it answers.
pub fn redis_options() -> RedisOptions {
    RedisOptions {
        prefix: prefix(),
        timeout: Duration::from_secs(5),
        connect_timeout: Duration::from_secs(5),
        ..RedisOptions::at(&redis_url())
    }
}

pub async fn redis(claim_life: Duration) -> RedisStore {
    let options = RedisOptions {
        claim_life,
        ..redis_options()
    };
    let store = RedisStore::new(options).unwrap();
    store.probe().await.expect("the tests' Redis must be up");
    store
}

pub fn account(name: &str) -> AccountId {
    AccountId::parse(name).unwrap()
}

pub fn ceilings(budget: u64) -> Ceilings {
    Ceilings::of(
        Budget::per_second(budget).unwrap(),
        Reserve::percent(20).unwrap(),
    )
}

pub fn job(id: &str, lane: Lane) -> JobRequest {
    JobRequest {
        id: JobId::parse(id).unwrap(),
        lane,
        try_id: TryId(number().wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        claim_for: Duration::from_secs(11),
        caps: Vec::new(),
        number: None,
        service: None,
    }
}

pub fn jobs(lane: Lane, count: usize) -> Vec<JobRequest> {
    let fresh = |_| job(&format!("job-{}", number()), lane);
    (0..count).map(fresh).collect()
}

pub fn request(name: &str, budget: u64, jobs: Vec<JobRequest>) -> AccountRequest {
    AccountRequest {
        account: account(name),
        ceilings: ceilings(budget),
        jobs,
    }
}

pub fn admitted(verdicts: &[Verdict]) -> usize {
    let passes = |verdict: &&Verdict| matches!(verdict, Verdict::Admitted { .. });
    verdicts.iter().filter(passes).count()
}

pub fn sent(carrier_ref: Option<&str>) -> TryResult {
    TryResult::Sent {
        carrier: Arc::from("sandbox"),
        carrier_ref: carrier_ref.map(Arc::from),
    }
}

pub fn conclusion(job: &JobRequest, result: TryResult) -> Conclusion {
    Conclusion {
        account: account("acct"),
        id: job.id.clone(),
        try_id: job.try_id,
        result,
        frees: Vec::new(),
    }
}

/// Admission of one account's jobs, budget 100.
pub async fn admit<S: CounterStore>(store: &S, jobs: &[JobRequest]) -> (Vec<Verdict>, Counter) {
    let mut results = store.admit(&[request("acct", 100, jobs.to_vec())]).await;
    let answer = results.remove(0).unwrap();
    assert_eq!(answer.verdicts.len(), jobs.len());
    (answer.verdicts, answer.counter)
}

/// Admission of one job.
pub async fn admit_one<S: CounterStore>(store: &S, job: &JobRequest) -> Verdict {
    admit(store, std::slice::from_ref(job)).await.0.remove(0)
}

/// A new try of a job.
pub fn again(job: &JobRequest) -> JobRequest {
    JobRequest {
        try_id: TryId(number()),
        ..job.clone()
    }
}
