//! Carriers that answer badly, late, or not at all.

use std::time::Duration;

use crate::support::jobs::Offer;
use crate::support::scene::{Scene, quantile};
use crate::support::stub::{Reply, Stub};
use crate::support::worker::Worker;
use crate::support::{eventually, heavy};

use super::{SECOND, otp};

/// Misbehaves on the first try of a job as the job's id says.
fn script(id: &str, attempt: u64) -> Reply {
    match (id, attempt) {
        ("status", 1) => Reply::Status(500),
        ("throttled", 1) => Reply::Throttle(1),
        ("silent", 1) => Reply::Hang,
        ("broken", 1) => Reply::CloseMidBody,
        ("rejected", _) => Reply::Status(400),
        ("hopeless", _) => Reply::Status(503),
        _ => Reply::Accept,
    }
}

fn tries(stub: &Stub, id: &str) -> Vec<u64> {
    let arrivals = stub.arrivals();
    let own = arrivals.iter().filter(|arrival| arrival.id == id);
    own.map(|arrival| arrival.attempt).collect()
}

/// Each kind of failed try leads to the outcome that it should, always under one idempotency key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_kind_of_failed_try_ends_as_it_should() {
    let scene = Scene::new("badcarrier")
        .await
        .set("JOBS__MAX_ATTEMPTS", 3)
        .set("JOBS__RETRY_BASE_MS", 50)
        .set("CARRIERS__DEFAULT__TIMEOUT_MS", 500);
    scene.stub.set_script(script);
    let worker = Worker::start(&scene.config).await;
    let ids = [
        "status",
        "throttled",
        "silent",
        "broken",
        "rejected",
        "hopeless",
    ];
    let offers = ids.map(|id| otp(id.to_owned()));
    scene.publisher().await.publish_all(&offers).await;

    let outcomes = "lanekeeper_outcomes_total";
    eventually("six outcomes", 30 * SECOND, async || {
        worker.count(outcomes, &[]).await == 6
    })
    .await;
    let count = async |outcome, reason| {
        worker
            .count(outcomes, &[("outcome", outcome), ("reason", reason)])
            .await
    };
    assert_eq!(count("dispatched", "").await, 4);
    assert_eq!(count("failed", "carrier_rejected").await, 1);
    assert_eq!(count("failed", "attempts_exhausted").await, 1);
    for id in ["status", "throttled", "silent"] {
        assert_eq!(tries(&scene.stub, id), [1, 2], "{id}");
    }
    assert_eq!(tries(&scene.stub, "rejected"), [1]);
    assert_eq!(tries(&scene.stub, "hopeless"), [1, 2, 3]);
    for arrival in scene.stub.arrivals() {
        assert_eq!(arrival.key, format!("{}:{}", arrival.account, arrival.id));
    }
    let possible = [("kind", "possible")];
    let possible = worker.count("lanekeeper_duplicates_total", &possible).await;
    assert!(possible >= 1, "the silent call may have been accepted");
    worker.stop().await;
    scene.end().await;
}

/// Jobs that wait for their next try hold no slot: the others go out as if they were alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failing_recipients_do_not_delay_the_others() {
    let _alone = heavy().await;
    let scene = Scene::new("failing").await.set("JOBS__MAX_ATTEMPTS", 3);
    scene.stub.set_script(|id, _| {
        let fails = id.starts_with("bad");
        if fails {
            Reply::Status(500)
        } else {
            Reply::Accept
        }
    });
    let worker = Worker::start(&scene.config).await;
    let publisher = scene.publisher().await;
    let offers = |count, name| Offer::many(count, name, otp);
    let (good, bad) = (offers(100, "good"), offers(45, "bad"));
    let (left_at, _) = tokio::join!(
        publisher.publish_at(20, &good),
        publisher.publish_at(9, &bad)
    );
    eventually("all outcomes", 20 * SECOND, async || {
        worker.count("lanekeeper_outcomes_total", &[]).await == 145
    })
    .await;
    let latencies = scene.stub.latencies(&left_at);
    let p99 = quantile(&latencies, 0.99);
    println!(
        "figure: failing_recipients healthy=100 failing=45 healthy_p50_ms={} healthy_p99_ms={}",
        quantile(&latencies, 0.5).as_millis(),
        p99.as_millis(),
    );
    assert!(p99 < Duration::from_millis(100), "p99 {p99:?}");
    worker.stop().await;
    scene.end().await;
}
