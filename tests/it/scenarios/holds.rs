//! Pausing, resuming and cancelling with ten thousand jobs queued and prefetched.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::support::jobs::Offer;
use crate::support::records::Records;
use crate::support::scene::Scene;
use crate::support::watch::CounterWatch;
use crate::support::worker::{Cluster, FALLBACKS};
use crate::support::{eventually, heavy};

const SECOND: Duration = Duration::from_secs(1);
const JOBS: usize = 2_500;
const BUDGET: i32 = 200;

/// What is paused, each in an account of its own. The first two are resumed, the others cancelled.
const KINDS: [&str; 4] = ["account", "campaign", "journey", "batch"];
const RESUMED: usize = 2;

fn account(kind: &str) -> String {
    format!("by-{kind}")
}

/// The thing that is paused: for an account, itself.
fn target(kind: &str) -> String {
    if kind == "account" {
        account(kind)
    } else {
        "spring".to_owned()
    }
}

/// The first half of them passwords.
fn jobs(kind: &str) -> Vec<Offer> {
    let job = |number: usize| {
        let id = format!("{kind}-{number}");
        let offer = if number < JOBS / 2 {
            Offer::otp(&account(kind), id)
        } else {
            Offer::marketing(&account(kind), id)
        };
        offer.queued_now().with(&format!("{kind}_id"), target(kind))
    };
    (0..JOBS).map(job).collect()
}

/// The time from an instant to each account's first arrival after it.
fn first_after(scene: &Scene, kind: &str, instant: Instant) -> Option<Duration> {
    let (account, arrivals) = (account(kind), scene.stub.arrivals());
    let own = arrivals.iter().filter(|one| one.account == account);
    own.filter(|one| one.at > instant)
        .map(|one| one.at - instant)
        .min()
}

/// F5-31: what is queued and prefetched stops within a second of the pause, in both lanes, waits
/// without the broker, and starts again within two of its end, under the ceiling.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_stops_what_is_on_its_way_and_its_end_lets_it_go() {
    let _alone = heavy().await;
    let (scene, database) = Scene::with_database("holds").await;
    // Few slots and a slow carrier: at any moment some jobs are on their way, not only when windows
    // open.
    let scene = scene.set("CARRIERS__DEFAULT__MAX_IN_FLIGHT", 10);
    scene.stub.set_latency(Duration::from_millis(25));
    let records = Records::of(database.pool());
    for kind in KINDS {
        records.account(&account(kind), BUDGET).await;
    }
    let cluster = Cluster::start(2, &scene.config).await;
    let events = scene.events().await;
    let queues = scene.queues().await;
    let publisher = scene.publisher().await;
    for kind in KINDS {
        publisher.publish_all(&jobs(kind)).await;
    }
    let all = KINDS.len() * JOBS;

    let holds = KINDS.map(|kind| {
        format!(
            "('{}', '{kind}', '{}', 'paused')",
            account(kind),
            target(kind)
        )
    });
    let insert = "INSERT INTO holds (account_id, kind, target, state) VALUES";
    let paused = records
        .commit(&format!("{insert} {}", holds.join(", ")))
        .await;
    let settled = async || records.waiting().await + scene.stub.distinct() == all;
    eventually("all that has not gone waits", 40 * SECOND, settled).await;
    let kept_within = paused.elapsed();
    eventually("the queues are empty", 5 * SECOND, async || {
        queues.all_ready().await == 0
    })
    .await;
    let deliveries = cluster.count("lanekeeper_deliveries_total", &[]).await;
    sleep(2 * SECOND).await;
    assert_eq!(
        cluster.count("lanekeeper_deliveries_total", &[]).await,
        deliveries
    );
    assert_eq!(queues.all_ready().await, 0);
    let before = scene.stub.arrivals();
    let last = before
        .iter()
        .map(|one| one.at.saturating_duration_since(paused))
        .max();
    let last = last.unwrap_or_default();
    let kept = records.waiting().await;
    assert_eq!(records.waiting_for("paused").await, kept);
    assert!(last < SECOND, "the last one {last:?} after the pause");

    let resumed_kinds = &KINDS[..RESUMED];
    let mut watches = Vec::new();
    for kind in resumed_kinds {
        watches.push(scene.watch_of(&account(kind)).await);
    }
    let resumed = records
        .commit(
            "DELETE FROM holds WHERE kind IN ('account', 'campaign');
             UPDATE holds SET state = 'cancelled'",
        )
        .await;
    let started = async || {
        let started = |kind: &&str| first_after(&scene, kind, resumed).is_some();
        resumed_kinds.iter().all(started)
    };
    eventually("the resumed ones go", 4 * SECOND, started).await;
    let starts: Vec<_> = resumed_kinds
        .iter()
        .filter_map(|kind| first_after(&scene, kind, resumed))
        .collect();
    records.await_entries(all, 60 * SECOND).await;
    let took = resumed.elapsed();
    let highest = highest(watches).await;
    let cancelled = records.ended("cancelled", "").await;
    println!(
        "figure: holds jobs={all} before={} last_after_pause_ms={} all_kept_s={:.1} started_ms={starts:?} highest={highest} cancelled={cancelled} over_s={:.1} fallbacks={}",
        before.len(),
        last.as_millis(),
        kept_within.as_secs_f64(),
        took.as_secs_f64(),
        cluster.count(FALLBACKS, &[]).await,
    );
    assert!(starts.iter().all(|start| *start < 2 * SECOND), "{starts:?}");
    assert!(
        highest <= u64::from(BUDGET.unsigned_abs()),
        "a window reached {highest}"
    );
    let went_on = |kind: &&str| first_after(&scene, kind, resumed).is_some();
    assert!(!KINDS[RESUMED..].iter().any(|kind| went_on(&kind)));
    assert_eq!(cancelled + scene.stub.distinct(), all);
    assert!(scene.stub.duplicates().is_empty());
    let told = events.ends();
    assert_eq!(told[&("cancelled".to_owned(), String::new())], cancelled);
    assert_eq!(records.waiting().await, 0);
    scene.assert_drained().await;
    cluster.stop().await;
    scene.end().await;
}

async fn highest(watches: Vec<CounterWatch>) -> u64 {
    let mut highest = 0;
    for watch in watches {
        let windows = watch.finish().await;
        highest = highest.max(windows.iter().map(|window| window.count).max().unwrap_or(0));
    }
    highest
}
