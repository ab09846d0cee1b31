//! What happens to jobs and ceilings when Redis, PostgreSQL, the broker or a worker goes away.
//!
//! Each test prints its figures in one line that begins with `figure:`.

mod carrier;
mod database;
mod http;
mod ledger;
mod rolling;

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::support::jobs::{Offer, Publisher};
use crate::support::rabbit::Rabbit;
use crate::support::redis::RedisServer;
use crate::support::scene::{ACCOUNT, Scene, quantile};
use crate::support::stub::Arrival;
use crate::support::worker::{Cluster, FALLBACKS, Worker};
use crate::support::{amqp_url, eventually, heavy, redis_url};

const SECOND: Duration = Duration::from_secs(1);

fn otp(id: String) -> Offer {
    Offer::otp(ACCOUNT, id)
}

fn marketing(id: String) -> Offer {
    Offer::marketing(ACCOUNT, id)
}

/// So many jobs, half of them passwords, which come first.
fn of_both_lanes(count: usize) -> Vec<Offer> {
    let codes = Offer::many(count / 2, "code", otp);
    let bulk = Offer::many(count / 2, "bulk", marketing);
    [codes, bulk].concat()
}

/// A way in which Redis can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RedisFault {
    Stopped,
    Frozen,
    ReadOnly,
    Restarted,
    Flushed,
    ScriptsFlushed,
}

impl RedisFault {
    /// Whether decisions have to be made without Redis meanwhile.
    fn is_outage(self) -> bool {
        matches!(self, Self::Stopped | Self::Frozen | Self::ReadOnly)
    }

    async fn begin(self, redis: &mut RedisServer) {
        match self {
            Self::Stopped => redis.stop().await,
            Self::Frozen => redis.freeze(),
            Self::ReadOnly => drop(redis.cli(&["REPLICAOF", "127.0.0.1", "1"]).await),
            Self::Restarted => redis.restart().await,
            Self::Flushed => drop(redis.cli(&["FLUSHALL"]).await),
            Self::ScriptsFlushed => drop(redis.cli(&["SCRIPT", "FLUSH"]).await),
        }
    }

    async fn end(self, redis: &mut RedisServer) {
        match self {
            Self::Stopped => redis.restart().await,
            Self::Frozen => redis.thaw(),
            Self::ReadOnly => drop(redis.cli(&["REPLICAOF", "NO", "ONE"]).await),
            Self::Restarted | Self::Flushed | Self::ScriptsFlushed => {}
        }
    }
}

/// Redis fails in every way in turn, under a campaign over budget and 15 passwords a second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_faults_under_load_delay_no_password_and_pass_no_ceiling() {
    let _alone = heavy().await;
    let mut redis = RedisServer::start().await;
    let scene = Scene::on("redisfaults", amqp_url(), redis.url()).await;
    let worker = Worker::start(&scene.config).await;
    let (campaign, passwords) = (scene.publisher().await, scene.publisher().await);
    campaign
        .publish_all(&Offer::many(6_000, "bulk", marketing))
        .await;
    let load = spawn_passwords(passwords, 15, 15 * 45);

    let begin = Instant::now();
    sleep(2 * SECOND).await;
    for fault in [
        RedisFault::Stopped,
        RedisFault::Frozen,
        RedisFault::ReadOnly,
        RedisFault::Restarted,
        RedisFault::Flushed,
        RedisFault::ScriptsFlushed,
    ] {
        let before = worker.count(FALLBACKS, &[]).await;
        fault.begin(&mut redis).await;
        sleep(2 * SECOND).await;
        let during = worker.count(FALLBACKS, &[]).await - before;
        if fault.is_outage() {
            assert!(during > 0, "{fault:?} was not noticed");
            assert!(
                worker.is_ready().await,
                "Redis alone must not cost readiness"
            );
        }
        fault.end(&mut redis).await;
        assert_shared_within(&worker, 3 * SECOND, fault).await;
    }
    let left_at = load.await.unwrap();
    let took = begin.elapsed();
    eventually("all passwords are out", 5 * SECOND, async || {
        left_at.keys().all(|id| scene.stub.first(id).is_some())
    })
    .await;
    let latencies = scene.stub.latencies(&left_at);
    let p99 = quantile(&latencies, 0.99);
    let arrivals = scene.stub.arrivals();
    let busiest = busiest_second(&arrivals);
    let sent = arrivals.len() as u64;
    println!(
        "figure: redis_faults seconds={} otps={} otp_p50_ms={} otp_p99_ms={} otp_max_ms={} busiest_second={busiest} sent={sent} fallbacks={}",
        took.as_secs(),
        latencies.len(),
        quantile(&latencies, 0.5).as_millis(),
        p99.as_millis(),
        quantile(&latencies, 1.0).as_millis(),
        worker.count(FALLBACKS, &[]).await,
    );
    assert!(p99 < Duration::from_millis(100), "p99 {p99:?}");
    // A sliding second can touch two windows, so it may see twice the ceiling.
    assert!(busiest <= 200, "{busiest} in one second");
    // In the long run each second has one window; three of the faults lose the memory of one.
    let windows = took.as_secs() + 1 + 3;
    assert!(sent <= 100 * windows, "{sent} in {took:?}");
    assert!(scene.stub.duplicates().is_empty());
    worker.stop().await;
    scene.end().await;
    redis.stop().await;
}

fn spawn_passwords(
    publisher: Publisher,
    per_second: u32,
    count: usize,
) -> tokio::task::JoinHandle<HashMap<String, Instant>> {
    tokio::spawn(async move {
        let codes = Offer::many(count, "code", otp);
        publisher.publish_at(per_second, &codes).await
    })
}

/// After `limit` no decision falls open any more, and the worker says so itself.
async fn assert_shared_within(worker: &Worker, limit: Duration, fault: RedisFault) {
    sleep(limit).await;
    let settled = worker.count(FALLBACKS, &[]).await;
    sleep(SECOND).await;
    let later = worker.count(FALLBACKS, &[]).await;
    let log = worker.log();
    assert_eq!(later, settled, "still falling open after {fault:?}:\n{log}");
    let shared = [("mode", "shared")];
    assert_eq!(worker.count("lanekeeper_meter_mode", &shared).await, 1);
}

/// The most arrivals in any sliding second.
fn busiest_second(arrivals: &[Arrival]) -> usize {
    let mut at: Vec<Instant> = arrivals.iter().map(|arrival| arrival.at).collect();
    at.sort();
    let within = |(place, from): (usize, &Instant)| {
        at.partition_point(|instant| *instant < *from + SECOND) - place
    };
    at.iter().enumerate().map(within).max().unwrap_or(0)
}

/// Without Redis each decision is counted, once; and a process on its own keeps the ceilings.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_decision_without_redis_is_counted_once() {
    let _alone = heavy().await;
    let mut redis = RedisServer::start().await;
    let scene = Scene::on("fallback", amqp_url(), redis.url()).await;
    let worker = Worker::start(&scene.config).await;
    let publisher = scene.publisher().await;
    publisher.publish_all(&Offer::many(5, "before", otp)).await;
    scene.stub.wait_for(5, 5 * SECOND).await;
    assert_eq!(worker.count(FALLBACKS, &[]).await, 0);

    redis.stop().await;
    let left_at = publisher
        .publish_at(50, &Offer::many(200, "code", otp))
        .await;
    scene.stub.wait_for(205, 5 * SECOND).await;
    let fallbacks = worker.count(FALLBACKS, &[("lane", "transactional")]).await;
    let latencies = scene.stub.latencies(&left_at);
    println!(
        "figure: fallback decisions=200 fallbacks={fallbacks} otp_p99_ms={} otp_max_ms={}",
        quantile(&latencies, 0.99).as_millis(),
        quantile(&latencies, 1.0).as_millis(),
    );
    assert_eq!(fallbacks, 200);
    worker.stop().await;
    scene.end().await;
}

/// Without Redis the sheds are decisions too, and each is counted once: by the end of the second in
/// which a campaign came, there were as many decisions as jobs sent and jobs shed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sheds_without_redis_are_counted_once() {
    let _alone = heavy().await;
    let mut redis = RedisServer::start().await;
    let scene = Scene::on("shedding", amqp_url(), redis.url()).await;
    redis.stop().await;
    // So fast a pace that whatever is turned away is shed at once, and never asked about again.
    let config = scene
        .config
        .clone()
        .set("LANES__MARKETING_SHEDS_PER_SECOND", "7000");
    let worker = Worker::start(&config).await;
    let publisher = scene.publisher().await;
    publisher
        .publish_all(&Offer::many(250, "bulk", marketing))
        .await;
    eventually("all are sent", 10 * SECOND, async || {
        scene.stub.distinct() == 250
    })
    .await;
    let fallbacks = worker.count(FALLBACKS, &[("lane", "marketing")]).await;
    let sheds = worker
        .count("lanekeeper_sheds_total", &[("lane", "marketing")])
        .await;
    println!("figure: fallback_sheds sent=250 sheds={sheds} fallbacks={fallbacks}");
    assert!(sheds > 0, "80 of 250 fit into the first window");
    assert_eq!(fallbacks, 250 + sheds);
    worker.stop().await;
    scene.end().await;
}

/// The broker restarts under load: every job comes out, once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_restart_under_load_loses_nothing() {
    const JOBS: usize = 2_000;
    let mut rabbit = Rabbit::start().await;
    let _alone = heavy().await;
    let scene = Scene::on("restart", rabbit.url(), redis_url()).await;
    scene.stub.set_latency(Duration::from_millis(20));
    let scene = scene.set("LANES__BUDGET_PER_SECOND", 200);
    let mut cluster = Cluster::start(2, &scene.config).await;
    let publisher = scene.publisher().await;
    publisher.publish_all(&of_both_lanes(JOBS)).await;
    scene.stub.wait_for(300, 20 * SECOND).await;

    let unready = eventually("readiness is false", 10 * SECOND, async || {
        !cluster.workers[0].is_ready().await && !cluster.workers[1].is_ready().await
    });
    tokio::join!(rabbit.restart(), unready);
    let returned = Instant::now();
    let before = scene.stub.distinct();
    for worker in &mut cluster.workers {
        worker.await_ready(10 * SECOND).await;
    }
    let ready = returned.elapsed();
    scene.stub.wait_for(before + 1, 10 * SECOND).await;
    let consuming = returned.elapsed();
    scene.stub.wait_for(JOBS, 60 * SECOND).await;
    scene.assert_drained().await;
    let duplicates = scene.stub.duplicates();
    let prevented = [("kind", "prevented")];
    println!(
        "figure: broker_restart ready_ms={} consuming_ms={} offered={JOBS} dispatched={} queued=0 duplicates={} prevented={}",
        ready.as_millis(),
        consuming.as_millis(),
        scene.stub.distinct(),
        duplicates.len(),
        cluster
            .count("lanekeeper_duplicates_total", &prevented)
            .await,
    );
    assert!(consuming < 10 * SECOND);
    assert_eq!(scene.stub.distinct(), JOBS);
    assert!(duplicates.is_empty(), "{duplicates:?}");
    cluster.stop().await;
}

/// Workers die by SIGKILL ten times: each job arrives, and each repetition was counted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_killed_workers_lose_nothing_and_count_what_they_repeat() {
    const JOBS: usize = 10_000;
    const KILLS: usize = 10;
    const SLOTS: usize = 16;
    let _alone = heavy().await;
    // A Redis that no other test slows down: without it nobody knows what others have sent.
    let redis = RedisServer::start().await;
    let scene = Scene::on("kills", amqp_url(), redis.url())
        .await
        .set("LANES__BUDGET_PER_SECOND", 220)
        .set("CARRIERS__DEFAULT__MAX_IN_FLIGHT", SLOTS)
        .set("CARRIERS__DEFAULT__TIMEOUT_MS", 500);
    scene.stub.set_latency(Duration::from_millis(40));
    let mut cluster = Cluster::start(3, &scene.config).await;
    let publisher = scene.publisher().await;
    publisher.publish_all(&of_both_lanes(JOBS)).await;

    let possible = [("kind", "possible")];
    let mut counted = 0;
    for kill in 0..KILLS {
        // A killed worker's claims end 1.5 s after their start, and a shed returns after a second:
        // by the next kill all repetitions of this one have been counted.
        sleep(SECOND * 3).await;
        let victim = cluster.workers.remove(kill % cluster.workers.len());
        counted += victim.count("lanekeeper_duplicates_total", &possible).await;
        victim.kill().await;
        cluster.workers.push(Worker::start(&scene.config).await);
    }
    let at_last_kill = scene.stub.distinct();
    assert!(at_last_kill < JOBS, "the kills came too late to matter");
    // Without the workers' deaths the rest is only a matter of time.
    scene.stub.wait_for(JOBS, 60 * SECOND).await;
    scene.assert_drained().await;
    counted += cluster
        .count("lanekeeper_duplicates_total", &possible)
        .await;
    let duplicates = scene.stub.duplicates();
    let repeated: usize = duplicates.values().map(|calls| calls - 1).sum();
    println!(
        "figure: kills kills={KILLS} jobs={JOBS} distinct={} repeated={repeated} counted={counted} fallbacks={} in_flight_at_most={} before_last_kill={at_last_kill}",
        scene.stub.distinct(),
        cluster.count(FALLBACKS, &[]).await,
        KILLS * SLOTS,
    );
    assert!(repeated <= KILLS * SLOTS, "{repeated} repeated");
    assert!(
        counted >= repeated as u64,
        "{repeated} repeated, {counted} counted"
    );
    cluster.stop().await;
    scene.end().await;
}
