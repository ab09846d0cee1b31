//! Ceilings of sender numbers and messaging services: a hot one slows nobody else down.

use std::time::Duration;

use tokio::time::Instant;

use crate::support::counters::Counters;
use crate::support::jobs::Offer;
use crate::support::records::Records;
use crate::support::scene::{ACCOUNT, Scene};
use crate::support::watch::CounterWatch;
use crate::support::worker::Worker;
use crate::support::{eventually, heavy};

const SECOND: Duration = Duration::from_secs(1);
const HOT: usize = 40;
const OTHERS: usize = 900;
const CEILING: u64 = 10;

/// A kind of ceiling, and a job's field that it is about.
struct Kind {
    name: &'static str,
    field: &'static str,
    hot: &'static str,
    other: &'static str,
}

const KINDS: [Kind; 2] = [
    Kind {
        name: "number",
        field: "from",
        hot: "+447700900777",
        other: "+447700900778",
    },
    Kind {
        name: "service",
        field: "service_id",
        hot: "hot",
        other: "other",
    },
];

impl Kind {
    /// So many hot ones and the others, in a round of their own.
    fn jobs(&self, round: &str, hot: usize) -> Vec<Offer> {
        // The hot ones are spread among the first of the others, and would all stand in their way.
        let job = |number: usize| {
            let is_hot = number.is_multiple_of(2) && number / 2 < hot;
            let (name, target) = if is_hot {
                ("hot", self.hot)
            } else {
                ("other", self.other)
            };
            let id = format!("{}-{round}-{name}-{number}", self.name);
            let offer = Offer::marketing(ACCOUNT, id).queued_now();
            offer.with(self.field, target)
        };
        (0..OTHERS + hot).map(job).collect()
    }
}

/// How long it takes until all of the others are at the carrier.
async fn others_take(scene: &Scene, kind: &Kind, round: &str, hot: usize) -> Duration {
    let start = format!("{}-{round}-other", kind.name);
    let jobs = kind.jobs(round, hot);
    let publisher = scene.publisher().await;
    let arrived = || {
        let arrivals = scene.stub.arrivals().into_iter();
        arrivals
            .filter(|one| one.id.starts_with(&start))
            .map(|one| one.at)
            .collect::<Vec<Instant>>()
    };
    publisher.publish_all(&jobs).await;
    let all = async || arrived().len() == OTHERS;
    eventually("all others arrive", 30 * SECOND, all).await;
    let arrived = arrived();
    *arrived.iter().max().expect("some") - *arrived.iter().min().expect("some")
}

/// Few slots and a slow carrier, so that there is a rate to be slowed down.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hot_number_or_service_keeps_its_rate_and_slows_no_other() {
    let _alone = heavy().await;
    let (scene, database) = Scene::with_database("hot").await;
    let scene = scene.set("CARRIERS__DEFAULT__MAX_IN_FLIGHT", 10);
    scene.stub.set_latency(Duration::from_millis(20));
    let records = Records::of(database.pool());
    records.account(ACCOUNT, 10_000).await;
    for kind in &KINDS {
        let per_second = i32::try_from(CEILING).unwrap();
        records
            .ceiling(ACCOUNT, kind.name, kind.hot, per_second)
            .await;
    }
    let worker = Worker::start(&scene.config).await;
    let counters = Counters::connect(&scene.redis, &scene.prefix).await;
    for kind in &KINDS {
        let alone = others_take(&scene, kind, "before", 0).await;
        let before = scene.stub.count();
        let key = counters.key(ACCOUNT, &format!("{}:{}", kind.name, kind.hot));
        let watch = CounterWatch::of_key(&scene.redis, key).await;
        let began = Instant::now();
        let beside = others_take(&scene, kind, "beside", HOT).await;
        scene
            .stub
            .wait_for(before + HOT + OTHERS, 30 * SECOND)
            .await;
        let took = began.elapsed();
        let in_turn = [("reason", kind.name)];
        let in_turn = worker.count("lanekeeper_waits_total", &in_turn).await;
        let windows = watch.finish().await;
        let highest = windows.iter().map(|window| window.count).max().unwrap_or(0);
        // A machine is not equally fast at all times: what is alone is measured twice.
        let alone = alone.max(others_take(&scene, kind, "after", 0).await);
        let slower = beside.as_secs_f64() / alone.as_secs_f64();
        println!(
            "figure: hot_{} others_alone_ms={} others_beside_ms={} hot={HOT} waited_in_turn={in_turn} hot_took_s={:.1} highest_window={highest}",
            kind.name,
            alone.as_millis(),
            beside.as_millis(),
            took.as_secs_f64(),
        );
        assert!(slower < 1.1, "{slower:.2} times as long");
        assert!(in_turn > 0, "none waited for its turn in the table");
        assert!((1..=CEILING).contains(&highest), "{windows:?}");
        // Four windows at the least; the waits in between cost some more.
        assert!(took > 3 * SECOND && took < 15 * SECOND, "{took:?}");
    }
    let jobs = KINDS.len() * (3 * OTHERS + HOT);
    records.await_entries(jobs, 10 * SECOND).await;
    assert!(scene.stub.duplicates().is_empty());
    worker.stop().await;
    scene.end().await;
}
