//! The promises about lanes, ceilings and memory, on real worker processes and real services.
//!
//! Each test prints its figures in one line that begins with `figure:`.

mod caps;
mod check;
mod deferral;
mod holds;
mod hot;
mod http;
mod opt_out;
mod targets;

use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use crate::support::jobs::Offer;
use crate::support::redis::RedisServer;
use crate::support::scene::{ACCOUNT, Scene, quantile};
use crate::support::stub::Arrival;
use crate::support::watch::{CounterWatch, Window};
use crate::support::worker::{Cluster, FALLBACKS, Worker};
use crate::support::{amqp_url, eventually, heavy};

const SECOND: Duration = Duration::from_secs(1);

fn otp(id: String) -> Offer {
    Offer::otp(ACCOUNT, id)
}

fn marketing(id: String) -> Offer {
    Offer::marketing(ACCOUNT, id)
}

/// The longest count and the number of windows, after checking that none exceeds `ceiling`.
fn highest(windows: &[Window], ceiling: u64) -> u64 {
    let highest = windows.iter().map(|window| window.count).max();
    let highest = highest.expect("at least one window");
    assert!(
        highest <= ceiling,
        "a window reached {highest}: {windows:?}"
    );
    highest
}

fn arrivals_between(arrivals: &[Arrival], lane: &str, from: Instant, to: Instant) -> usize {
    let inside = |arrival: &&Arrival| arrival.lane == lane && (from..to).contains(&arrival.at);
    arrivals.iter().filter(inside).count()
}

/// Rule 3's worked example: a campaign of 250 a second beside 15 one-time passwords a second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_campaign_over_budget_leaves_the_reserve_to_passwords() {
    let _alone = heavy().await;
    let scene = Scene::new("rule3").await;
    scene.stub.set_latency(Duration::from_millis(20));
    let cluster = Cluster::start(4, &scene.config).await;
    let watch = scene.watch().await;
    let (campaign, passwords) = (scene.publisher().await, scene.publisher().await);
    let bulk = Offer::many(2_500, "bulk", marketing);
    let codes = Offer::many(150, "code", otp);

    let start = Instant::now();
    let (_, left_at) = tokio::join!(
        campaign.publish_at(250, &bulk),
        passwords.publish_at(15, &codes)
    );
    sleep_until(start + 10 * SECOND).await;
    let during = scene.stub.arrivals();
    let sent = arrivals_between(&during, "marketing", start, start + 10 * SECOND);
    scene.stub.wait_for(2_650, 60 * SECOND).await;

    let latencies = scene.stub.latencies(&left_at);
    let p99 = quantile(&latencies, 0.99);
    let windows = watch.finish().await;
    let highest = highest(&windows, 100);
    println!(
        "figure: rule3 marketing_per_s={} otps={} otp_p50_ms={} otp_p99_ms={} otp_max_ms={} windows={} highest={highest}",
        sent / 10,
        latencies.len(),
        quantile(&latencies, 0.5).as_millis(),
        p99.as_millis(),
        quantile(&latencies, 1.0).as_millis(),
        windows.len(),
    );
    let without_redis = usize::try_from(cluster.count(FALLBACKS, &[]).await).unwrap();
    let room = 650..=800 + without_redis;
    assert!(room.contains(&sent), "{sent} marketing in 10 s");
    assert!(p99 < Duration::from_millis(100), "p99 {p99:?}");
    assert_eq!(scene.stub.count(), 2_650, "{:?}", scene.stub.duplicates());
    scene.assert_drained().await;
    cluster.stop().await;
    scene.end().await;
}

/// Eight workers, both queues full: the ceilings are reached and never passed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_workers_fill_each_window_and_pass_no_ceiling() {
    let _alone = heavy().await;
    // A Redis that no other test slows down: a single late answer would be a decision without it.
    let redis = RedisServer::start().await;
    let mut scene = Scene::on("exact", amqp_url(), redis.url()).await;
    // Eight workers share what one delay queue gives back. More sheds would only take the processor
    // away from Redis, and a late answer would be a decision without it.
    scene.config = scene
        .config
        .set("LANES__TRANSACTIONAL_SHEDS_PER_SECOND", 100)
        .set("LANES__MARKETING_SHEDS_PER_SECOND", 60);
    scene.declare().await;
    let publisher = scene.publisher().await;
    // Eight starting processes take the whole of two processors: they are up before it counts.
    let cluster = Cluster::start(8, &scene.config).await;
    publisher
        .publish_all(&Offer::many(1_000, "code", otp))
        .await;
    publisher
        .publish_all(&Offer::many(3_000, "bulk", marketing))
        .await;
    let started_with = cluster.count(FALLBACKS, &[]).await;
    let watch = scene.watch().await;
    eventually("all passwords are out", 60 * SECOND, async || {
        let arrivals = scene.stub.arrivals();
        arrivals
            .iter()
            .filter(|a| a.lane == "transactional")
            .count()
            == 1_000
    })
    .await;
    sleep(9 * SECOND).await;
    let windows = watch.finish().await;
    let fallbacks = cluster.count(FALLBACKS, &[]).await - started_with;
    let arrivals = scene.stub.arrivals();
    cluster.stop().await;

    let (both, bulk_only) = phases(&windows, &arrivals);
    let lowest = |windows: &[Window]| windows.iter().map(|window| window.count).min();
    println!(
        "figure: exact both_windows={} both_lowest={:?} both_highest={} marketing_windows={} marketing_lowest={:?} marketing_highest={} fallbacks={fallbacks}",
        both.len(),
        lowest(&both),
        highest(&both, 100),
        bulk_only.len(),
        lowest(&bulk_only),
        highest(&bulk_only, 80),
    );
    highest(&windows, 100);
    assert!(both.len() >= 5 && bulk_only.len() >= 5, "{windows:?}");
    assert!(lowest(&both) >= Some(98), "{both:?}");
    assert!(lowest(&bulk_only) >= Some(78), "{bulk_only:?}");
    assert!(scene.stub.duplicates().is_empty());
    // What the watch may have missed between two looks shows here: all that was counted arrived, and
    // nothing else but what was decided without Redis.
    let counted: u64 = windows.iter().map(|window| window.count).sum();
    let arrived = arrivals.len() as u64;
    assert!(
        arrived <= counted + 100 + fallbacks,
        "{arrived} arrived, {counted} counted, {fallbacks} decided without Redis"
    );
    scene.end().await;
}

/// Full windows in which passwords were still queued, and full ones in which none were. The first
/// windows (workers still starting), the one in which the passwords ran out and the last one
/// (still open) belong to neither.
fn phases(windows: &[Window], arrivals: &[Arrival]) -> (Vec<Window>, Vec<Window>) {
    let last_code = arrivals
        .iter()
        .filter(|a| a.lane == "transactional")
        .map(|a| a.at)
        .max();
    let last_code = last_code.expect("passwords arrived");
    let full = &windows[..windows.len() - 1];
    let steady = full.iter().position(|window| window.count >= 100);
    let full = &full[steady.unwrap_or(full.len())..];
    let both = full
        .iter()
        .filter(|window| window.seen + SECOND / 10 < last_code);
    let bulk_only = full.iter().filter(|window| window.opened > last_code);
    (both.copied().collect(), bulk_only.copied().collect())
}

/// Shed attempts do not count: a flood of marketing leaves the reserve untouched.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_marketing_offers_leave_room_for_twenty_passwords() {
    let _alone = heavy().await;
    let scene = Scene::new("flood").await.set("AMQP__PREFETCH", 1_000);
    let worker = Worker::start(&scene.config).await;
    let watch = scene.watch().await;
    let publisher = scene.publisher().await;
    let codes = Offer::many(20, "code", otp);
    publisher
        .publish_all(&Offer::many(1_000, "bulk", marketing))
        .await;

    let before = full_window(&watch, 80).await;
    let left_at = publisher.publish_at(2_000, &codes).await;
    eventually("all passwords are out", SECOND, async || {
        left_at.keys().all(|id| scene.stub.first(id).is_some())
    })
    .await;
    let after = watch.current();
    let latencies = scene.stub.latencies(&left_at);
    println!(
        "figure: flood counter_before={} counter_after={} otp_max_ms={}",
        before.count,
        after.map_or(0, |window| window.count),
        quantile(&latencies, 1.0).as_millis(),
    );
    let windows = watch.finish().await;
    highest(&windows, 100);
    assert_eq!(
        after.map(|window| window.count),
        Some(100),
        "one window held both"
    );
    assert_eq!(worker.count(FALLBACKS, &[]).await, 0);
    let sheds = [("lane", "transactional")];
    assert_eq!(worker.count("lanekeeper_sheds_total", &sheds).await, 0);
    worker.stop().await;
    scene.end().await;
}

/// Waits for a window in which the counter has stood still at `count`, with most of it to come.
async fn full_window(watch: &CounterWatch, count: u64) -> Window {
    let mut found = None;
    eventually("a full window", 10 * SECOND, async || {
        found = watch.current().filter(|window| {
            let stood = window.seen - window.opened >= SECOND / 10;
            window.count >= count && stood && window.left >= SECOND * 6 / 10
        });
        found.is_some()
    })
    .await;
    let window = found.expect("just found");
    assert_eq!(window.count, count);
    window
}

/// A slow carrier whose slots are full of marketing still starts a password within one call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_carrier_starts_a_password_within_one_call() {
    let _alone = heavy().await;
    let scene = Scene::new("slow").await;
    let call = Duration::from_millis(300);
    scene.stub.set_latency(call);
    let scene = scene
        .set("LANES__BUDGET_PER_SECOND", 10_000)
        .set("CARRIERS__DEFAULT__MAX_IN_FLIGHT", 10);
    let worker = Worker::start(&scene.config).await;
    let publisher = scene.publisher().await;
    publisher
        .publish_all(&Offer::many(5_000, "bulk", marketing))
        .await;
    scene.stub.wait_for(24, 10 * SECOND).await;

    let codes = Offer::many(20, "code", otp);
    let left_at = publisher.publish_at(5, &codes).await;
    eventually("all passwords have started", 2 * SECOND, async || {
        left_at.keys().all(|id| scene.stub.first(id).is_some())
    })
    .await;
    let latencies = scene.stub.latencies(&left_at);
    let longest = quantile(&latencies, 1.0);
    println!(
        "figure: slow_carrier call_ms=300 otp_p50_ms={} otp_max_ms={}",
        quantile(&latencies, 0.5).as_millis(),
        longest.as_millis(),
    );
    assert!(longest < call, "a password waited {longest:?}");
    assert!(scene.stub.count() < 1_000, "marketing was still queued");
    worker.stop().await;
    scene.end().await;
}

/// One account's flood of passwords does not hold up another account's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_one_accounts_passwords_lets_anothers_through() {
    let _alone = heavy().await;
    let scene = Scene::new("neighbours").await;
    let worker = Worker::start(&scene.config).await;
    let publisher = scene.publisher().await;
    let flood = Offer::many(10_000, "flood", otp);
    publisher.publish_all(&flood).await;

    let own = Offer::many(10, "own", |id| Offer::otp("other", id));
    let left_at = publisher.publish_at(2, &own).await;
    eventually("the other account's are out", 15 * SECOND, async || {
        left_at.keys().all(|id| scene.stub.first(id).is_some())
    })
    .await;
    let latencies = scene.stub.latencies(&left_at);
    let longest = quantile(&latencies, 1.0);
    println!(
        "figure: neighbours otp_p50_ms={} otp_max_ms={} flood_left={}",
        quantile(&latencies, 0.5).as_millis(),
        longest.as_millis(),
        10_010 - scene.stub.distinct(),
    );
    // The whole flood would take 100 s.
    assert!(longest < 10 * SECOND, "another account waited {longest:?}");
    assert!(scene.stub.distinct() < 9_000, "the flood was still there");
    worker.stop().await;
    scene.end().await;
}

/// A long backlog stays in the broker. It loads the machine little, so that others may run beside it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_minute_of_a_long_backlog_needs_little_memory() {
    let scene = Scene::new("memory").await;
    let worker = {
        let _alone = heavy().await;
        let worker = Worker::start(&scene.config).await;
        let publisher = scene.publisher().await;
        publisher
            .publish_all(&Offer::many(20_000, "bulk", marketing))
            .await;
        worker
    };
    let start = Instant::now();
    let mut peak = 0;
    while start.elapsed() < 60 * SECOND {
        peak = peak.max(worker.rss_bytes());
        sleep(SECOND / 4).await;
    }
    let sent = scene.stub.distinct();
    let megabytes = peak / 1024 / 1024;
    println!("figure: memory seconds=60 sent={sent} peak_rss_mib={megabytes}");
    assert!(megabytes < 64, "{megabytes} MiB");
    // 80 a second, and a little from before the minute began.
    assert!((4_000..=5_200).contains(&sent), "{sent} sent in a minute");
    worker.stop().await;
    scene.end().await;
}
