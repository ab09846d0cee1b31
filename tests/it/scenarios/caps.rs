//! Frequency caps under many workers, and workers that die.

use std::time::Duration;

use tokio::time::sleep;

use crate::support::events::Events;
use crate::support::jobs::Offer;
use crate::support::records::Records;
use crate::support::redis::RedisServer;
use crate::support::scene::{ACCOUNT, Scene};
use crate::support::stub::Reply;
use crate::support::worker::{Cluster, FALLBACKS, Worker};
use crate::support::{amqp_url, eventually, heavy};

const SECOND: Duration = Duration::from_secs(1);
const JOBS: usize = 64;
const LIMIT: usize = 3;

/// Jobs of both lanes for one recipient, all under the account's cap.
fn for_one(round: usize) -> Vec<Offer> {
    let job = |number: usize| {
        let id = format!("{round}-{number}");
        let offer = if number.is_multiple_of(2) {
            Offer::otp(ACCOUNT, id)
        } else {
            Offer::marketing(ACCOUNT, id)
        };
        offer
            .with("to", format!("+44770090{round:04}"))
            .queued_now()
    };
    (0..JOBS).map(job).collect()
}

/// How many jobs of a round ended so, as the events say.
fn ended(events: &Events, round: usize, outcome: &str) -> usize {
    let start = format!("{round}-");
    let told = events.all();
    let is_one = |event: &&serde_json::Value| {
        event["outcome"] == outcome && event["id"].as_str().unwrap().starts_with(&start)
    };
    told.iter().filter(is_one).count()
}

/// Of all that come at once to all workers, exactly as many go as the cap allows. A worker for which
/// Redis is late, as it is on a machine that is very busy, lets pass what it decides meanwhile, counted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_race_for_a_caps_slots_exactly_as_many_win() {
    const ROUNDS: usize = 6;
    let _alone = heavy().await;
    let redis = RedisServer::start().await;
    let database = crate::support::postgres::TestDatabase::create().await;
    let scene = Scene::on("caprace", amqp_url(), redis.url()).await;
    // A few deliveries for each worker, so that all eight have some.
    let scene = scene.recorded_at(database.url()).set("AMQP__PREFETCH", 4);
    let records = Records::of(database.pool());
    records.account(ACCOUNT, 10_000).await;
    records.daily_cap(ACCOUNT, 3).await;
    let cluster = Cluster::start(8, &scene.config).await;
    let events = scene.events().await;
    let publisher = scene.publisher().await;
    let (mut went, mut exact) = (0, 0);
    for round in 0..ROUNDS {
        let before = cluster.count(FALLBACKS, &[]).await;
        publisher.publish_all(&for_one(round)).await;
        let all =
            async || ended(&events, round, "refused") + ended(&events, round, "dispatched") >= JOBS;
        eventually("all have ended", 20 * SECOND, all).await;
        let dispatched = ended(&events, round, "dispatched");
        let uncapped = cluster.count(FALLBACKS, &[]).await - before;
        let most = LIMIT + usize::try_from(uncapped).unwrap();
        assert!(
            (LIMIT..=most).contains(&dispatched),
            "round {round}: {dispatched} went, {uncapped} decided without Redis"
        );
        went += dispatched;
        exact += usize::from(uncapped == 0);
    }
    assert!(exact > 0, "no round in which Redis decided everything");
    records.await_entries(ROUNDS * JOBS, 10 * SECOND).await;
    let mut busy = 0;
    for worker in &cluster.workers {
        busy += u64::from(worker.count("lanekeeper_deliveries_total", &[]).await > 0);
    }
    let refused = records.ended("refused", "frequency_cap").await;
    println!(
        "figure: cap_race workers=8 busy={busy} rounds={ROUNDS} exact={exact} jobs={JOBS} limit={LIMIT} at_carrier={} refused={refused}",
        scene.stub.count(),
    );
    assert_eq!(scene.stub.count(), went);
    assert_eq!(refused, ROUNDS * JOBS - went);
    assert!(busy >= 6, "{busy} workers took part");
    cluster.stop().await;
    scene.end().await;
}

/// A worker dies while the carrier has its job: the job goes again under the same key and on the same
/// slot, and there is none for another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_comes_again_has_its_slot_already() {
    let _alone = heavy().await;
    let (scene, database) = Scene::with_database("capagain").await;
    let scene = scene.set("CARRIERS__DEFAULT__TIMEOUT_MS", 2_000);
    let records = Records::of(database.pool());
    records.account(ACCOUNT, 100).await;
    records.daily_cap(ACCOUNT, 1).await;
    scene.stub.set_script(|_, _| Reply::Hang);
    let worker = Worker::start(&scene.config).await;
    let publisher = scene.publisher().await;
    publisher
        .publish_all(&[Offer::otp(ACCOUNT, "first").queued_now()])
        .await;
    scene.stub.wait_for(1, 5 * SECOND).await;
    worker.kill().await;
    scene.stub.set_script(|_, _| Reply::Accept);

    let worker = Worker::start(&scene.config).await;
    publisher
        .publish_all(&[Offer::otp(ACCOUNT, "second").queued_now()])
        .await;
    records.await_entries(2, 20 * SECOND).await;
    let arrivals = scene.stub.arrivals();
    let keys: Vec<_> = arrivals.iter().map(|one| one.key.as_str()).collect();
    assert_eq!(keys, ["acme:first", "acme:first"]);
    assert_eq!(
        records.entries(ACCOUNT, "first").await[0].outcome,
        "dispatched"
    );
    let second = &records.entries(ACCOUNT, "second").await[0];
    assert_eq!(second.reason.as_deref(), Some("frequency_cap"));
    let possible = [("kind", "possible")];
    assert_eq!(
        worker.count("lanekeeper_duplicates_total", &possible).await,
        1
    );
    worker.stop().await;
    scene.end().await;
}

/// What the carrier does not take has used no slot, however it ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_failed_gives_its_slot_up() {
    let (scene, database) = Scene::with_database("capfreed").await;
    let scene = scene
        .set("JOBS__MAX_ATTEMPTS", 2)
        .set("JOBS__RETRY_BASE_MS", 50);
    let records = Records::of(database.pool());
    records.account(ACCOUNT, 100).await;
    records.daily_cap(ACCOUNT, 1).await;
    scene.stub.set_script(|id, _| match id {
        "rejected" => Reply::Status(400),
        "hopeless" => Reply::Status(503),
        _ => Reply::Accept,
    });
    let worker = Worker::start(&scene.config).await;
    let publisher = scene.publisher().await;
    let mut jobs = 0;
    for id in ["rejected", "hopeless", "taken", "capped"] {
        let job = Offer::marketing(ACCOUNT, id).queued_now();
        publisher.publish_all(&[job]).await;
        jobs += 1;
        records.await_entries(jobs, 10 * SECOND).await;
    }
    let mut ends = Vec::new();
    for id in ["rejected", "hopeless", "taken", "capped"] {
        let entry = records.entries(ACCOUNT, id).await.remove(0);
        ends.push((entry.outcome, entry.reason.unwrap_or_default()));
    }
    let expected = [
        ("failed", "carrier_rejected"),
        ("failed", "attempts_exhausted"),
        ("dispatched", ""),
        ("refused", "frequency_cap"),
    ];
    let expected = expected.map(|(outcome, reason)| (outcome.to_owned(), reason.to_owned()));
    assert_eq!(ends, expected);
    // A repetition would come at once.
    sleep(SECOND / 4).await;
    assert_eq!(scene.stub.distinct(), 3);
    worker.stop().await;
    scene.end().await;
}
