//! Whom a backlog delays.

use super::super::SECOND;
use super::{CEILING, Hot, backlog, millis, most_overtaken, stop};
use crate::support::jobs::Offer;
use crate::support::scene::ACCOUNT;
use crate::support::{eventually, heavy};
use tokio::time::sleep;

/// In the shared queue it would wait until all of the backlog before it had been shed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_accounts_single_job_passes_a_flood() {
    let _alone = heavy().await;
    let hot = Hot::new("single").await;
    let cluster = hot.start(1).await;
    let (flood, other) = (hot.scene.publisher().await, hot.scene.publisher().await);
    let bulk = backlog(20_000, "marketing");
    let single = async {
        sleep(SECOND).await;
        let left_at = other
            .publish_at(1, &[Offer::marketing("other", "single")])
            .await;
        let arrived = async || hot.scene.stub.first("single").is_some();
        eventually("the single job arrives", 60 * SECOND, arrived).await;
        left_at
    };
    let ((), left_at) = tokio::join!(flood.publish_all(&bulk), single);
    let overtaken = most_overtaken(&hot.scene.stub.arrivals(), &left_at);
    let took = hot.scene.stub.latencies(&left_at);
    println!(
        "figure: hot_single ms={} overtaken_by={overtaken}",
        millis(&took, 1.0)
    );
    // That many go in five seconds. All of the flood would take a worker twenty to pass on.
    assert!(
        overtaken <= 5 * usize::try_from(CEILING).unwrap(),
        "{took:?}"
    );
    stop(cluster).await;
    hot.end().await;
}

/// An account's backlog of passwords keeps no other account's from going at once, and one of
/// marketing not its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn passwords_pass_a_backlog_in_either_lane() {
    let _alone = heavy().await;
    for (lane, account) in [("transactional", "other"), ("marketing", ACCOUNT)] {
        let hot = Hot::new("beside").await;
        let cluster = hot.start(1).await;
        hot.settle(&backlog(4_000, lane), &cluster).await;
        let publisher = hot.scene.publisher().await;
        let codes = Offer::many(75, "code", |id| Offer::otp(account, id));
        let left_at = publisher.publish_at(15, &codes).await;
        let arrived = async || left_at.keys().all(|id| hot.scene.stub.first(id).is_some());
        eventually("all passwords arrive", 20 * SECOND, arrived).await;
        let overtaken = most_overtaken(&hot.scene.stub.arrivals(), &left_at);
        let took = hot.scene.stub.latencies(&left_at);
        let shed = [("lane", "transactional")];
        let sheds = cluster.count("lanekeeper_sheds_total", &shed).await;
        println!(
            "figure: hot_passwords backlog={lane} p50_ms={} p99_ms={} overtaken_by={overtaken}",
            millis(&took, 0.5),
            millis(&took, 0.99),
        );
        // What one window lets through goes at its opening, in front of a password that comes then; a
        // busy machine may see another one open meanwhile.
        assert!(overtaken <= 200, "{overtaken} of the backlog went first");
        if lane == "marketing" {
            assert_eq!(sheds, 0, "the reserve is the passwords'");
        }
        stop(cluster).await;
        hot.end().await;
    }
}
