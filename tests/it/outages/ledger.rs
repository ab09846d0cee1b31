//! The ledger alone does not keep up: marketing stops for it, and passwords do not wait.

use std::time::Duration;

use sqlx::Executor as _;
use tokio::time::{Instant, sleep_until};

use super::{SECOND, marketing, otp};
use crate::support::jobs::Offer;
use crate::support::records::Records;
use crate::support::scene::{Scene, quantile};
use crate::support::worker::Worker;
use crate::support::{eventually, heavy};

/// A second of patience with one batch, and a second for the batch that was being written before.
const STOPS_WITHIN: Duration = Duration::from_millis(2_200);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_ledger_is_slow_marketing_stops_and_passwords_go_on() {
    const BULK: usize = 1_200;
    const CODES: usize = 20 * 9;
    let _alone = heavy().await;
    let (scene, database) = Scene::with_database("slowledger").await;
    let scene = scene.set("LANES__BUDGET_PER_SECOND", 200);
    let records = Records::of(database.pool());
    let worker = Worker::start(&scene.config).await;
    let bulk = Offer::many(BULK, "bulk", |id| marketing(id).queued_now());
    scene.publisher().await.publish_all(&bulk).await;
    scene.stub.wait_for(100, 10 * SECOND).await;
    let passwords = scene.publisher().await;
    let codes = Offer::many(CODES, "code", |id| otp(id).queued_now());
    let load = tokio::spawn(async move { passwords.publish_at(20, &codes).await });

    let mut locking = database.pool().begin().await.unwrap();
    let lock = "LOCK TABLE ledger IN ACCESS EXCLUSIVE MODE";
    locking.execute(lock).await.unwrap();
    let locked = Instant::now();
    sleep_until(locked + 3 * SECOND).await;
    assert_eq!(worker.count("lanekeeper_ledger_behind", &[]).await, 1);
    assert_eq!(worker.count("lanekeeper_database_away", &[]).await, 0);
    let told = worker.ops("/readyz").await;
    assert!(told.contains("the ledger does not keep up"), "{told}");
    sleep_until(locked + 6 * SECOND).await;
    locking.rollback().await.unwrap();
    let unlocked = Instant::now();

    let left_at = load.await.unwrap();
    scene.stub.wait_for(BULK + CODES, 30 * SECOND).await;
    records.await_entries(BULK + CODES, 10 * SECOND).await;
    let arrivals = scene.stub.arrivals();
    let bulk_at = arrivals
        .iter()
        .filter(|one| one.lane == "marketing")
        .map(|one| one.at);
    let meanwhile = bulk_at.clone().filter(|at| *at > locked && *at < unlocked);
    let last = meanwhile.map(|at| at - locked).max().unwrap_or_default();
    let back = bulk_at
        .filter(|at| *at > unlocked)
        .map(|at| at - unlocked)
        .min();
    let latencies = scene.stub.latencies(&left_at);
    let (p99, longest) = (quantile(&latencies, 0.99), quantile(&latencies, 1.0));
    println!(
        "figure: slow_ledger seconds=6 last_marketing_ms={} marketing_back_ms={} otps={CODES} otp_p99_ms={} otp_max_ms={} entered={} lost={}",
        last.as_millis(),
        back.unwrap_or_default().as_millis(),
        p99.as_millis(),
        longest.as_millis(),
        BULK + CODES,
        worker.count("lanekeeper_ledger_lost_total", &[]).await,
    );
    assert!(last < STOPS_WITHIN, "marketing went on for {last:?}");
    assert!(p99 < SECOND / 4, "passwords waited: {p99:?}");
    assert!(back.is_some_and(|back| back < 3 * SECOND), "{back:?}");
    let behind = async || worker.count("lanekeeper_ledger_behind", &[]).await == 0;
    eventually("the ledger keeps up", 3 * SECOND, behind).await;
    assert_eq!(worker.count("lanekeeper_ledger_lost_total", &[]).await, 0);
    assert!(scene.stub.duplicates().is_empty());
    scene.assert_drained().await;
    worker.stop().await;
    scene.end().await;
}
