//! Rolling deploys: workers are told to stop, one after the other, while others take over.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{SECOND, marketing, otp};
use crate::support::jobs::Offer;
use crate::support::scene::Scene;
use crate::support::worker::{Cluster, Worker};
use crate::support::{amqp_url, eventually, heavy, redis_url};

const RESTARTS: usize = 30;
/// Of each lane, published before each restart: as much as two workers send until the next one.
const JOBS_EACH: usize = 20;
/// What is at the carrier when a worker is told to stop takes this long to come back.
const CALL: Duration = SECOND;

/// Thirty restarts in a row under load, with calls under way at each: nothing is lost, nothing is
/// sent twice, and each worker ends by itself, in order, in about the time of one call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rolling_restarts_lose_nothing_and_repeat_nothing() {
    let _alone = heavy().await;
    let scene = Scene::on("rolling", amqp_url(), redis_url())
        .await
        .set("AMQP__PREFETCH", 100)
        .set("CARRIERS__DEFAULT__MAX_IN_FLIGHT", 20);
    scene.stub.set_latency(CALL);
    let mut cluster = Cluster::start(2, &scene.config).await;
    let publisher = scene.publisher().await;
    let mut jobs = 0;
    let mut slowest = Duration::ZERO;
    for restart in 0..RESTARTS {
        for make in [otp, marketing] {
            let offers = Offer::many(JOBS_EACH, &format!("{restart}-{jobs}"), make);
            publisher.publish_all(&offers).await;
            jobs += offers.len();
        }
        let mut leaving = cluster.workers.remove(0);
        let busy = async || leaving.count("lanekeeper_in_flight", &[]).await > 0;
        eventually("calls under way", 30 * SECOND, busy).await;
        cluster.workers.push(Worker::start(&scene.config).await);
        let told = Instant::now();
        leaving.sigterm();
        let status = leaving.wait_exit(30 * SECOND).await;
        assert!(status.success(), "ended with {status}:\n{}", leaving.log());
        slowest = slowest.max(told.elapsed());
    }
    scene.stub.wait_for(jobs, 120 * SECOND).await;
    // A repetition would come with the redelivery of what was not acknowledged.
    sleep(CALL * 2).await;
    let duplicates = scene.stub.duplicates();
    println!(
        "figure: rolling restarts={RESTARTS} jobs={jobs} distinct={} repeated={} slowest_stop_ms={}",
        scene.stub.distinct(),
        duplicates.len(),
        slowest.as_millis(),
    );
    assert!(duplicates.is_empty(), "{duplicates:?}");
    assert!(slowest < CALL + 5 * SECOND, "{slowest:?}");
    cluster.stop().await;
    assert_eq!(scene.queues().await.all_ready().await, 0);
    scene.end().await;
}
