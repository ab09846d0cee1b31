//! Many jobs that wait for an instant: taken in, kept, and let go.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{Instant, sleep};

use crate::support::jobs::Offer;
use crate::support::records::Records;
use crate::support::scene::Scene;
use crate::support::worker::{Cluster, Worker};
use crate::support::{eventually, heavy};

const SECOND: Duration = Duration::from_secs(1);
/// Jobs that become due while the others wait, and their account's rate in their lane.
const DUE: usize = 300;
const DUE_PER_SECOND: usize = 80;
/// A worker may use so much.
const MEMORY_MIB: u64 = 64;
/// A build for tests takes in so many a second even on a busy machine; by itself it does four times
/// as many.
const TAKEN_IN_PER_SECOND: f64 = 2_000.0;

/// How many jobs wait in all: a million, for those who have the time.
fn jobs() -> usize {
    let wanted = std::env::var("LANEKEEPER_TEST_DEFERRED_JOBS").ok();
    wanted.and_then(|jobs| jobs.parse().ok()).unwrap_or(20_000)
}

fn later(id: String, at: &str) -> Offer {
    Offer::marketing("patient", id).with("not_before", at)
}

/// The most memory that any of them has used, looked at now and then.
fn peak_mib(cluster: &Cluster) -> u64 {
    let used = cluster.workers.iter().map(Worker::rss_bytes);
    used.max().unwrap_or(0) / 1024 / 1024
}

/// Takes in so many jobs that are due tomorrow. Gives the time that it took, and the most memory
/// that a worker used.
async fn take_in(
    jobs: usize,
    scene: &Scene,
    records: &Records,
    cluster: &Cluster,
) -> (Duration, u64) {
    let tomorrow = (Timestamp::now() + Duration::from_secs(86_400)).to_string();
    let publisher = scene.publisher().await;
    let began = Instant::now();
    let publishing = tokio::spawn(async move {
        for start in (0..jobs).step_by(10_000) {
            let chunk = start..jobs.min(start + 10_000);
            let offer = |number| later(format!("later-{number}"), &tomorrow);
            publisher
                .publish_all(&chunk.map(offer).collect::<Vec<_>>())
                .await;
        }
    });
    let mut peak = 0;
    while records.waiting().await < jobs {
        peak = peak.max(peak_mib(cluster));
        assert!(began.elapsed() < 1_200 * SECOND, "not all taken in");
        // Counting a million rows is work for the server too.
        sleep(SECOND / 20 + began.elapsed() / 50).await;
    }
    publishing.await.unwrap();
    (began.elapsed(), peak)
}

/// The processor time of all workers in three seconds in which nothing comes and nothing is due.
async fn idle_time(scene: &Scene, cluster: &Cluster) -> Duration {
    scene.assert_drained().await;
    let deliveries = cluster.count("lanekeeper_deliveries_total", &[]).await;
    let used = || cluster.workers.iter().map(Worker::cpu).sum::<Duration>();
    let before = used();
    sleep(3 * SECOND).await;
    let idle = used().saturating_sub(before);
    let later = cluster.count("lanekeeper_deliveries_total", &[]).await;
    assert_eq!(later, deliveries);
    idle
}

/// Lets some jobs become due, and gives how long after their instant the first and the last arrived.
async fn become_due(scene: &Scene) -> (Duration, Duration) {
    let wait = 5 * SECOND;
    let (instant, due) = (Instant::now() + wait, (Timestamp::now() + wait).to_string());
    let prompt = |id| Offer::marketing("prompt", id).with("not_before", &*due);
    let soon = Offer::many(DUE, "soon", prompt);
    scene.publisher().await.publish_all(&soon).await;
    scene.stub.wait_for(DUE, 30 * SECOND).await;
    let arrivals = scene.stub.arrivals();
    // The wall clock's instant and the steady clock's were read one after the other.
    let early = arrivals.iter().filter(|one| one.at + SECOND / 20 < instant);
    assert_eq!(early.count(), 0);
    let after = arrivals
        .iter()
        .map(|one| one.at.saturating_duration_since(instant));
    let first = after.clone().min().unwrap_or_default();
    (first, after.max().unwrap_or_default())
}

/// Nothing circles through the broker to wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deferred_jobs_cost_nothing_while_they_wait_and_go_in_time() {
    let jobs = jobs();
    let _alone = heavy().await;
    let (scene, database) = Scene::with_database("deferred").await;
    let records = Records::of(database.pool());
    let cluster = Cluster::start(2, &scene.config).await;
    let (took, peak) = take_in(jobs, &scene, &records, &cluster).await;
    let idle = idle_time(&scene, &cluster).await;
    let (first, last) = become_due(&scene).await;
    let peak = peak.max(peak_mib(&cluster));
    #[expect(clippy::cast_precision_loss, reason = "a million at most")]
    let per_second = jobs as f64 / took.as_secs_f64();
    println!(
        "figure: deferred jobs={jobs} taken_in_s={:.1} per_second={per_second:.0} idle_cpu_ms_in_3s={} first_after_due_ms={} last_of_{DUE}_ms={} peak_rss_mib={peak}",
        took.as_secs_f64(),
        idle.as_millis(),
        first.as_millis(),
        last.as_millis(),
    );
    assert!(per_second > TAKEN_IN_PER_SECOND, "{per_second:.0} a second");
    assert!(first < 2 * SECOND, "the first one {first:?} late");
    let at_the_rate = SECOND * u32::try_from(DUE.div_ceil(DUE_PER_SECOND)).unwrap();
    assert!(
        last < at_the_rate + 2 * SECOND,
        "the last one {last:?} late"
    );
    assert!(peak < MEMORY_MIB, "{peak} MiB");
    assert!(
        idle < 3 * SECOND / 4,
        "{idle:?} of processor time for nothing"
    );
    records.await_entries(DUE, 5 * SECOND).await;
    assert_eq!(records.waiting().await, jobs);
    cluster.stop().await;
    scene.end().await;
}

/// Workers end, in order and not, while jobs go to the table and while they come back from it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restarts_while_jobs_are_deferred_and_released_lose_nothing() {
    const JOBS: usize = 5_000;
    const SLOTS: usize = 20;
    let _alone = heavy().await;
    let (scene, database) = Scene::with_database("restarts").await;
    let scene = scene
        .set("CARRIERS__DEFAULT__MAX_IN_FLIGHT", SLOTS)
        .set("CARRIERS__DEFAULT__TIMEOUT_MS", 1_000);
    scene.stub.set_latency(Duration::from_millis(20));
    let records = Records::of(database.pool());
    records.account("patient", 1_000).await;
    let mut cluster = Cluster::start(2, &scene.config).await;
    let publisher = scene.publisher().await;
    let due = (Timestamp::now() + Duration::from_secs(9)).to_string();
    let offers = Offer::many(JOBS, "later", |id| later(id, &due).queued_now());
    let publishing = tokio::spawn(async move { publisher.publish_all(&offers).await });

    let mut prevented = 0;
    for (kill, progress) in [(true, 700), (false, 2_000)] {
        let there = async || records.waiting().await >= progress;
        eventually("some are deferred", 20 * SECOND, there).await;
        prevented += replace_one(&mut cluster, &scene, kill).await;
    }
    publishing.await.unwrap();
    let all = async || records.waiting().await + scene.stub.distinct() >= JOBS;
    eventually("all are deferred", 30 * SECOND, all).await;
    let deferred = records.waiting().await;
    for (kill, progress) in [(true, JOBS / 5), (false, JOBS / 2), (true, 4 * JOBS / 5)] {
        scene.stub.wait_for(progress, 30 * SECOND).await;
        prevented += replace_one(&mut cluster, &scene, kill).await;
    }
    scene.stub.wait_for(JOBS, 60 * SECOND).await;
    records.await_entries(JOBS, 20 * SECOND).await;
    scene.assert_drained().await;
    assert_eq!(records.waiting().await, 0);
    prevented += counted(&cluster.workers).await;
    let duplicates = scene.stub.duplicates();
    println!(
        "figure: deferral_restarts jobs={JOBS} deferred={deferred} killed=3 stopped=2 distinct={} repeated={} prevented={prevented}",
        scene.stub.distinct(),
        duplicates.len(),
    );
    // What a killed worker had in flight, and nothing else, may have gone twice.
    assert!(duplicates.len() <= 3 * SLOTS, "{duplicates:?}");
    cluster.stop().await;
    scene.end().await;
}

/// Ends the oldest worker, and starts another one. Gives the repetitions that it had prevented.
async fn replace_one(cluster: &mut Cluster, scene: &Scene, kill: bool) -> u64 {
    let mut leaving = cluster.workers.remove(0);
    let prevented = counted(std::slice::from_ref(&leaving)).await;
    if kill {
        leaving.kill().await;
    } else {
        leaving.sigterm();
        let status = leaving.wait_exit(30 * SECOND).await;
        assert!(status.success(), "ended with {status}:\n{}", leaving.log());
    }
    cluster.workers.push(Worker::start(&scene.config).await);
    prevented
}

async fn counted(workers: &[Worker]) -> u64 {
    let mut sum = 0;
    for worker in workers {
        let prevented = [("kind", "prevented")];
        sum += worker
            .count("lanekeeper_duplicates_total", &prevented)
            .await;
    }
    sum
}
