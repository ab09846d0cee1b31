//! What the meter's tests stand on: requests, stores, short words for verdicts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use deadpool_redis::redis::{
    AsyncConnectionConfig, Client, FromRedisValue, aio::MultiplexedConnection, cmd,
};
use jiff::Timestamp;
use lanekeeper::dispatch::ports::{
    AccountRequest, CapKey, CapRequest, Clock, Conclusion, Door, JobRequest, TargetCeiling, TryId,
    TryResult,
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
pub const OVER_NUMBER: Verdict = Verdict::Shed(Limit::Number);
pub const OVER_SERVICE: Verdict = Verdict::Shed(Limit::Service);

/// Runs each test body on the store in memory, under paused time, and on Redis.
macro_rules! on_every_store {
    ($($test:ident with claims living $life:expr;)*) => {
        mod in_memory {
            $(#[tokio::test(start_paused = true)]
            async fn $test() {
                super::$test(&super::memory($life)).await;
            })*
        }
        mod in_redis {
            $(#[tokio::test]
            async fn $test() {
                super::$test(&super::redis($life).await).await;
            })*
        }
    };
}
pub(crate) use on_every_store;

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
        door: Door::Worker,
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

pub fn cap(name: &str, recipient: &str, limit: u32, window: Duration) -> CapRequest {
    let key = CapKey {
        cap: Arc::from(name),
        recipient: Arc::from(recipient),
    };
    CapRequest { key, limit, window }
}

pub fn target(name: &str, per_second: u32) -> TargetCeiling {
    let target = name.into();
    TargetCeiling { target, per_second }
}

/// A new job with these caps.
pub fn capped_job(caps: &[CapRequest]) -> JobRequest {
    let caps = caps.to_vec();
    let id = format!("job-{}", number());
    JobRequest {
        caps,
        ..job(&id, Transactional)
    }
}

/// The name of the cap that turned a job away.
pub fn full_cap(verdict: &Verdict) -> Option<&str> {
    match verdict {
        Verdict::Capped(capped) => Some(&capped.cap),
        _ => None,
    }
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

/// As [`conclusion`], of a job that has ended and gives up what its caps count.
pub fn last_conclusion(job: &JobRequest, result: TryResult) -> Conclusion {
    Conclusion {
        frees: job.caps.iter().map(|cap| cap.key.clone()).collect(),
        ..conclusion(job, result)
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

/// A client of its own, beside the store.
pub struct Raw(MultiplexedConnection);

impl Raw {
    pub async fn open() -> Self {
        let client = Client::open(redis_url()).unwrap();
        // Longer than the client waits by itself: on a busy machine looking through all keys takes long.
        let limit = Some(Duration::from_secs(20));
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(limit)
            .set_response_timeout(limit);
        let connecting = client.get_multiplexed_async_connection_with_config(&config);
        Self(connecting.await.unwrap())
    }

    pub async fn run<T: FromRedisValue>(&mut self, words: &[&str]) -> T {
        let mut command = cmd(words[0]);
        command.arg(&words[1..]);
        command.query_async(&mut self.0).await.unwrap()
    }

    pub async fn left(&mut self, key: &str) -> i64 {
        self.run(&["PTTL", key]).await
    }

    /// The server's time in milliseconds since the Unix epoch.
    pub async fn now_ms(&mut self) -> u64 {
        let (seconds, micros): (u64, u64) = self.run(&["TIME"]).await;
        seconds * 1_000 + micros / 1_000
    }
}
