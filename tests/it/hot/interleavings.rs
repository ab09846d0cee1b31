//! Random interleavings of splits, merges, publishing, workers that are killed or stand still, and a
//! broker that is killed: nothing is lost, and nothing is sent twice but what was under way when a
//! worker was killed or stopped.
//!
//! `LANEKEEPER_TEST_INTERLEAVINGS` says how many; `LANEKEEPER_TEST_SEED` with what to begin.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use fastrand::Rng;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::stubborn;
use super::{SECOND, Warm};
use crate::support::jobs::Offer;
use crate::support::scene::Scene;
use crate::support::worker::Worker;
use crate::support::{eventually, heavy};

/// Accounts that go through their own interleavings at the same time, under the same faults.
const TOGETHER: usize = 12;

/// How long one lasts.
const LASTS: Duration = Duration::from_secs(20);

/// For how long a worker stands still at most, in milliseconds: twice as long as its connection to the
/// broker bears.
const STANDSTILL_MS: u64 = 5_000;

/// How long before a kill a job may have been sent whose result was not noted yet.
const UNDER_WAY: Duration = Duration::from_millis(500);

const WORKERS: usize = 3;

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_sent_twice_whatever_happens_meanwhile() {
    let mut warm = Warm::start("inter").await;
    // A worker that stands still for two seconds is no longer connected.
    warm.scene = warm
        .scene
        .set("AMQP__HEARTBEAT_S", 1)
        .set("HOT__SETTLE_S", 2);
    let _alone = heavy().await;
    warm.scene.declare().await;
    let wanted = number("LANEKEEPER_TEST_INTERLEAVINGS").unwrap_or(TOGETHER);
    let mut rng = Rng::with_seed(number("LANEKEEPER_TEST_SEED").unwrap_or(1) as u64);
    let mut workers = Vec::new();
    for _ in 0..WORKERS {
        workers.push(Worker::start(&warm.scene.config).await);
    }
    let mut faults = Faults {
        workers,
        struck: Vec::new(),
        kills: 0,
        stops: 0,
        standstills: 0,
        broker_kills: 0,
        splits: 0,
        merges: 0,
    };
    let (mut done, mut published) = (0, 0);
    while done < wanted {
        let together = TOGETHER.min(wanted - done);
        let mut accounts = JoinSet::new();
        for place in done..done + together {
            let (url, prefix) = (warm.rabbit.url(), warm.scene.prefix.clone());
            let rng = rng.fork();
            accounts.spawn(one_account(url, prefix, format!("inter{place}"), rng));
        }
        faults.happen(&mut warm, &mut rng).await;
        while let Some(jobs) = accounts.join_next().await {
            published += jobs.unwrap();
        }
        done += together;
    }
    let arrived = async || warm.scene.stub.distinct() >= published;
    let all = tokio::time::timeout(90 * SECOND, eventually("all", 95 * SECOND, arrived)).await;
    let lost = published - warm.scene.stub.distinct();
    if lost > 0 {
        faults.tell(&warm).await;
    }
    assert!(
        all.is_ok() && lost == 0,
        "{lost} of {published} lost: {:?}",
        warm.listed().await
    );
    let merged = async || warm.listed().await.is_empty();
    eventually("all share again", 60 * SECOND, merged).await;
    let all_listed = async || warm.unlisted().await.is_empty();
    eventually("no queue is left over", 60 * SECOND, all_listed).await;
    for worker in std::mem::take(&mut faults.workers) {
        faults.count(&worker);
        worker.stop().await;
    }
    let twice = sent_twice(&warm.scene);
    println!(
        "figure: {done} interleavings, {published} jobs, {} splits, {} merges, {} workers killed, {} stopped, \
         {} stood still, {} broker kills: 0 lost, {} sent twice",
        faults.splits,
        faults.merges,
        faults.kills,
        faults.stops,
        faults.standstills,
        faults.broker_kills,
        twice.len()
    );
    assert!(
        faults.splits >= done / 2 && faults.merges >= done / 2,
        "too little has happened"
    );
    for (key, first) in twice {
        let excused = faults.struck.iter().any(|one| one.contains(&first));
        assert!(excused, "{key} was sent twice, and not under way at a kill");
    }
    warm.scene.end().await;
}

fn number(variable: &str) -> Option<usize> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Bursts of one account, each enough for a queue of its own, with pauses in which that is drained,
/// given up, left or gone; gives how many jobs there were.
async fn one_account(url: String, prefix: String, account: String, mut rng: Rng) -> usize {
    let until = Instant::now() + LASTS;
    let mut jobs = 0;
    let mut burst = 0;
    while Instant::now() < until {
        let count = rng.usize(1..130);
        let name = format!("{account}-{burst}");
        // Some are of the lane in which the account is not hot, most of the time.
        let offers: Vec<_> = (0..count)
            .map(|place| format!("{name}-{place}"))
            .map(|id| match rng.u8(..4) {
                0 => Offer::otp(&account, id),
                _ => Offer::marketing(&account, id),
            })
            .collect();
        stubborn::publish(&url, &prefix, &offers).await;
        jobs += count;
        burst += 1;
        sleep(Duration::from_millis(rng.u64(0..9_000))).await;
    }
    jobs
}

/// What happens to workers and broker meanwhile.
struct Faults {
    workers: Vec<Worker>,
    /// When a job may have been sent first that is sent again because of a fault.
    struck: Vec<RangeInclusive<Instant>>,
    kills: usize,
    stops: usize,
    standstills: usize,
    broker_kills: usize,
    splits: usize,
    merges: usize,
}

impl Faults {
    async fn happen(&mut self, warm: &mut Warm, rng: &mut Rng) {
        let until = Instant::now() + LASTS;
        while Instant::now() < until {
            sleep(Duration::from_millis(rng.u64(300..3_000))).await;
            match rng.u8(..10) {
                0 => {
                    self.broker_kills += 1;
                    warm.rabbit.restart().await;
                }
                1 => {
                    self.standstills += 1;
                    let worker = &self.workers[rng.usize(..self.workers.len())];
                    let began = Instant::now();
                    worker.signal("STOP");
                    sleep(Duration::from_millis(rng.u64(200..STANDSTILL_MS))).await;
                    worker.signal("CONT");
                    self.struck.push(began - UNDER_WAY..=Instant::now());
                }
                2..=3 => {
                    self.stops += 1;
                    self.take_one(rng).stop().await;
                    self.workers.push(Worker::spawn(&warm.scene.config));
                }
                _ => {
                    self.kills += 1;
                    let worker = self.take_one(rng);
                    worker.kill().await;
                    let killed = Instant::now();
                    self.struck.push(killed - UNDER_WAY..=killed);
                    self.workers.push(Worker::spawn(&warm.scene.config));
                }
            }
        }
    }

    /// What can be known of what is missing.
    async fn tell(&mut self, warm: &Warm) {
        let columns = [
            "list_queues",
            "name",
            "messages",
            "messages_unacknowledged",
            "consumers",
            "state",
        ];
        for row in warm.rabbit.list(&columns).await {
            println!("{row:?}");
        }
        for worker in &mut self.workers {
            println!("a worker, running: {}", worker.is_running());
            let log = worker.log();
            let told = log
                .lines()
                .filter(|line| line.contains("hot") || line.contains("WARN"));
            let told: Vec<_> = told.collect();
            for line in &told[told.len().saturating_sub(30)..] {
                println!("{line}");
            }
        }
    }

    fn take_one(&mut self, rng: &mut Rng) -> Worker {
        let place = rng.usize(..self.workers.len());
        let worker = self.workers.swap_remove(place);
        self.count(&worker);
        worker
    }

    /// Counts what a worker did that is about to end.
    fn count(&mut self, worker: &Worker) {
        let log = worker.log();
        self.splits += log.matches("an account has a queue of its own now").count();
        self.merges += log
            .matches("an account shares the lane's queue again")
            .count();
    }
}

/// Jobs that were sent more than once, with the instant of their first sending.
fn sent_twice(scene: &Scene) -> HashMap<String, Instant> {
    let duplicates = scene.stub.duplicates();
    let mut first = HashMap::new();
    for arrival in scene.stub.arrivals() {
        if duplicates.contains_key(&arrival.key) {
            first.entry(arrival.key).or_insert(arrival.at);
        }
    }
    first
}
