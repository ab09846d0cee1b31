//! The keys of caps and of numbers' and services' ceilings in Redis: windows to the millisecond,
//! expiry, healing, and many processes at once.

use std::sync::Arc;
use std::time::Duration;

use deadpool_redis::redis::Value;
use lanekeeper::dispatch::ports::{CapRequest, JobRequest, TryResult};
use lanekeeper::domain::Verdict;
use lanekeeper::meter::{CounterStore, RedisOptions, RedisStore};
use tokio::sync::Barrier;

use super::world::*;

const WINDOW_MS: u64 = 3_600_000;

fn daily(limit: u32) -> CapRequest {
    cap("daily", "anna", limit, Duration::from_millis(WINDOW_MS))
}

fn daily_job(limit: u32) -> JobRequest {
    capped_job(&[daily(limit)])
}

struct Rig {
    store: RedisStore,
    prefix: String,
    set: String,
    raw: Raw,
}

impl Rig {
    async fn new() -> Self {
        let options = redis_options();
        let prefix = options.prefix.clone();
        Self {
            set: format!("{prefix}{{acct}}:cap:daily:anna"),
            store: RedisStore::new(options).unwrap(),
            prefix,
            raw: Raw::open().await,
        }
    }

    /// Puts a job into the set, admitted so many milliseconds ago.
    async fn add(&mut self, id: &str, ago: u64) -> u64 {
        let score = self.raw.now_ms().await - ago;
        let set = self.set.clone();
        let words = ["ZADD", &set, &score.to_string(), id];
        self.raw.run::<i64>(&words).await;
        score
    }

    async fn size(&mut self) -> usize {
        let set = self.set.clone();
        self.raw.run(&["ZCARD", &set]).await
    }

    /// The set is there, and expires when the newest of its jobs leaves the window.
    async fn lasts_for_its_newest(&mut self) {
        let set = self.set.clone();
        let newest: Vec<(String, u64)> = self
            .raw
            .run(&["ZRANGE", &set, "-1", "-1", "WITHSCORES"])
            .await;
        let leaves = newest[0].1 + WINDOW_MS;
        let now = self.raw.now_ms().await;
        let left = u64::try_from(self.raw.left(&set).await).expect("it exists and expires");
        assert!(left <= WINDOW_MS);
        assert!(now + left + 1_000 >= leaves, "{left} ms");
    }

    async fn keys(&mut self) -> Vec<String> {
        let pattern = format!("{}*", self.prefix);
        self.raw.run(&["KEYS", &pattern]).await
    }
}

#[tokio::test]
async fn a_job_counts_for_one_window_and_no_longer() {
    for (ago, counts) in [
        (WINDOW_MS - 5_000, true),
        (WINDOW_MS, false),
        (WINDOW_MS + 1, false),
    ] {
        let mut rig = Rig::new().await;
        let score = rig.add("earlier", ago).await;
        let verdict = admit_one(&rig.store, &daily_job(1)).await;
        if counts {
            let Verdict::Capped(capped) = verdict else {
                panic!("{verdict:?}");
            };
            assert_eq!(capped.until_ms, score + WINDOW_MS);
        } else {
            assert_eq!(verdict, PASSES, "{ago} ms ago");
        }
        // What has left the window has left the set, too.
        assert_eq!(rig.size().await, 1);
        let left = rig.raw.left(&rig.set).await;
        assert!(left > 0 && left <= 3_600_000, "{left}");
    }
}

#[tokio::test]
async fn a_set_holds_no_more_than_its_window() {
    let mut rig = Rig::new().await;
    for number in 0..100 {
        rig.add(&format!("old-{number}"), WINDOW_MS + number).await;
    }
    rig.add("recent", 10_000).await;
    let batch = [daily_job(3), daily_job(3), daily_job(3)];
    let (verdicts, _) = admit(&rig.store, &batch).await;
    assert_eq!(admitted(&verdicts), 2);
    assert_eq!(rig.size().await, 3);
    rig.lasts_for_its_newest().await;
}

#[tokio::test]
async fn a_job_keeps_the_time_of_its_first_admission() {
    let mut rig = Rig::new().await;
    let job = daily_job(1);
    let score = rig.add(job.id.as_str(), 60_000).await;
    assert_eq!(admit_one(&rig.store, &job).await, PASSES);
    let set = rig.set.clone();
    let kept: u64 = rig.raw.run(&["ZSCORE", &set, job.id.as_str()]).await;
    assert_eq!(kept, score);
    rig.lasts_for_its_newest().await;
}

#[tokio::test]
async fn a_job_that_left_the_window_joins_anew() {
    let mut rig = Rig::new().await;
    let job = daily_job(1);
    rig.add(job.id.as_str(), WINDOW_MS).await;
    let before = rig.raw.now_ms().await;
    assert_eq!(admit_one(&rig.store, &job).await, PASSES);
    let set = rig.set.clone();
    let score: u64 = rig.raw.run(&["ZSCORE", &set, job.id.as_str()]).await;
    assert!(score >= before);
    assert_eq!(
        full_cap(&admit_one(&rig.store, &daily_job(1)).await),
        Some("daily")
    );
}

/// Whatever a decision meets, a full set, a job of its own or room for one more: afterwards the set
/// expires.
#[tokio::test]
async fn a_set_without_an_expiry_gets_one() {
    for limit in [1, 2] {
        let mut rig = Rig::new().await;
        rig.add("earlier", 60_000).await;
        assert_eq!(rig.raw.left(&rig.set).await, -1);
        admit_one(&rig.store, &daily_job(limit)).await;
        rig.lasts_for_its_newest().await;
    }
    let mut rig = Rig::new().await;
    let job = daily_job(1);
    rig.add(job.id.as_str(), 60_000).await;
    assert_eq!(admit_one(&rig.store, &job).await, PASSES);
    rig.lasts_for_its_newest().await;
}

#[tokio::test]
async fn what_is_no_set_is_replaced_and_freed_from_without_harm() {
    for left_behind in [
        &["SET", "KEY", "text"][..],
        &["SET", "KEY", "5", "PX", "7000"],
        &["RPUSH", "KEY", "a", "b"],
        &["HSET", "KEY", "a", "b"],
        &["SADD", "KEY", "a", "b"],
    ] {
        let mut rig = Rig::new().await;
        let words: Vec<&str> = left_behind
            .iter()
            .map(|word| {
                if *word == "KEY" {
                    rig.set.as_str()
                } else {
                    word
                }
            })
            .collect();
        rig.raw.run::<Value>(&words).await;
        let end = last_conclusion(&daily_job(1), TryResult::NotSent);
        rig.store.conclude(&[end]).await.unwrap();
        let (verdicts, _) = admit(&rig.store, &[daily_job(1), daily_job(1)]).await;
        assert_eq!(verdicts[0], PASSES, "{left_behind:?}");
        assert_eq!(full_cap(&verdicts[1]), Some("daily"), "{left_behind:?}");
        rig.lasts_for_its_newest().await;
    }
}

#[tokio::test]
async fn the_last_job_to_leave_takes_the_set_along() {
    let mut rig = Rig::new().await;
    let job = daily_job(3);
    admit_one(&rig.store, &job).await;
    assert_eq!(rig.size().await, 1);
    let end = last_conclusion(&job, TryResult::NotSent);
    rig.store.conclude(&[end]).await.unwrap();
    let set = rig.set.clone();
    assert!(!rig.keys().await.contains(&set));
}

#[tokio::test]
async fn jobs_that_are_turned_away_write_nothing() {
    let mut rig = Rig::new().await;
    let limited = JobRequest {
        number: Some(target("+15550100", 5)),
        service: Some(target("promo", 5)),
        ..daily_job(3)
    };
    let asked = request("acct", 0, vec![limited.clone(), again(&limited)]);
    rig.store.admit(&[asked]).await.remove(0).unwrap();
    assert_eq!(rig.keys().await, Vec::<String>::new());
    let closed = JobRequest {
        service: Some(target("closed", 0)),
        ..limited
    };
    let verdict = admit_one(&rig.store, &closed).await;
    assert_eq!(verdict, OVER_SERVICE);
    assert_eq!(rig.keys().await, Vec::<String>::new());
}

#[tokio::test]
async fn each_number_and_each_service_has_a_key_of_its_own() {
    let mut rig = Rig::new().await;
    let with = |number: &str, service: Option<&str>| JobRequest {
        number: Some(target(number, 2)),
        service: service.map(|service| target(service, 2)),
        ..jobs(Transactional, 1).remove(0)
    };
    let hot = |_| with("+15550100", None);
    let mut batch: Vec<JobRequest> = (0..10).map(hot).collect();
    batch.push(with("+15550101", Some("promo")));
    admit(&rig.store, &batch).await;
    for (name, count) in [
        ("number:+15550100", 2),
        ("number:+15550101", 1),
        ("service:promo", 1),
        ("count", 3),
    ] {
        let key = format!("{}{{acct}}:{name}", rig.prefix);
        let counted: u32 = rig.raw.run(&["GET", &key]).await;
        assert_eq!(counted, count, "{name}");
        let left = rig.raw.left(&key).await;
        assert!((0..=1_000).contains(&left), "{name}: {left}");
    }
}

#[tokio::test]
async fn a_damaged_counter_of_a_number_heals() {
    for (left_behind, expected) in [
        (&["SET", "KEY", "4"][..], 1),
        (&["SET", "KEY", "5", "EX", "3600"], 0),
        (&["SET", "KEY", "abc", "EX", "3600"], 5),
        (&["SET", "KEY", "-1"], 5),
        (&["ZADD", "KEY", "1", "a"], 5),
    ] {
        let mut rig = Rig::new().await;
        let key = format!("{}{{acct}}:number:+15550100", rig.prefix);
        let words: Vec<&str> = left_behind
            .iter()
            .map(|word| if *word == "KEY" { key.as_str() } else { word })
            .collect();
        rig.raw.run::<Value>(&words).await;
        let batch: Vec<JobRequest> = jobs(Transactional, 8)
            .into_iter()
            .map(|job| JobRequest {
                number: Some(target("+15550100", 5)),
                ..job
            })
            .collect();
        let (verdicts, _) = admit(&rig.store, &batch).await;
        assert_eq!(admitted(&verdicts), expected, "{left_behind:?}");
        let left = rig.raw.left(&key).await;
        assert!((0..=1_000).contains(&left), "{left_behind:?}: {left}");
    }
}

/// More keys and values than Lua can take at once.
#[tokio::test]
async fn a_batch_of_any_size_has_limits() {
    let rig = Rig::new().await;
    let batch: Vec<JobRequest> = (0..9_001)
        .map(|place| {
            let recipient = format!("recipient-{}", place / 2);
            let cap = cap("daily", &recipient, 1, Duration::from_secs(3_600));
            JobRequest {
                number: Some(target(&format!("+1555{place:07}"), 1)),
                service: Some(target("promo", 1_000_000)),
                ..capped_job(&[cap])
            }
        })
        .collect();
    let asked = request("acct", 1_000_000, batch.clone());
    let answer = rig.store.admit(&[asked]).await.remove(0).unwrap();
    assert_eq!(admitted(&answer.verdicts), 4_501);
    let ends: Vec<_> = batch
        .iter()
        .map(|job| last_conclusion(job, TryResult::NotSent))
        .collect();
    rig.store.conclude(&ends).await.unwrap();
    let mut rig = rig;
    let sets = format!("{}*:cap:*", rig.prefix);
    let sets: Vec<String> = rig.raw.run(&["KEYS", &sets]).await;
    assert_eq!(sets, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_64_jobs_at_once_for_one_recipient_exactly_the_limit_passes() {
    let options = redis_options();
    let start = Arc::new(Barrier::new(64));
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let store = Arc::new(RedisStore::new(options.clone()).unwrap());
        store.probe().await.unwrap();
        for _ in 0..8 {
            let (store, start) = (Arc::clone(&store), Arc::clone(&start));
            asking.spawn(async move {
                start.wait().await;
                admit_one(&*store, &daily_job(3)).await
            });
        }
    }
    let verdicts = asking.join_all().await;
    assert_eq!(admitted(&verdicts), 3);
    let capped = verdicts.iter().filter_map(full_cap).count();
    assert_eq!(capped, 61);
}

#[tokio::test]
async fn a_probe_needs_every_right_that_decisions_need() {
    let server = crate::support::redis::RedisServer::start().await;
    server
        .cli(&[
            "ACL", "SETUSER", "keeper", "on", ">pass", "~*", "+@all", "-zadd",
        ])
        .await;
    let url = format!("redis://keeper:pass@127.0.0.1:{}", server.port());
    let options = RedisOptions {
        timeout: Duration::from_secs(5),
        connect_timeout: Duration::from_secs(5),
        ..RedisOptions::at(&url)
    };
    let store = RedisStore::new(options).unwrap();
    let refused = store.probe().await;
    assert_eq!(refused, Err(lanekeeper::meter::StoreError::Denied));
}
