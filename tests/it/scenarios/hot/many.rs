//! Many accounts with backlogs at once.

use std::collections::BTreeMap;

use tokio::time::sleep;

use super::super::SECOND;
use super::{CEILING, Hot, millis, stop};
use crate::support::jobs::Offer;
use crate::support::{eventually, heavy};

const ACCOUNTS: usize = 10;

/// Each of them uses its ceiling, and accounts that send little are not kept waiting.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accounts_with_backlogs_starve_neither_each_other_nor_quiet_ones() {
    let _alone = heavy().await;
    let hot = Hot::new("many").await;
    let cluster = hot.start(2).await;
    let publisher = hot.scene.publisher().await;
    let bulk: Vec<_> = (0..ACCOUNTS * 1_500)
        .map(|place| Offer::marketing(&account(place), format!("bulk-{place}")))
        .collect();
    publisher.publish_all(&bulk).await;
    hot.queues
        .await_open("marketing", ACCOUNTS, 60 * SECOND)
        .await;
    let shared = hot.scene.queues().await;
    let passed_on =
        async || shared.ready("marketing").await == 0 && shared.ready("marketing.delay").await == 0;
    eventually("the shared queue is passed on", 60 * SECOND, passed_on).await;

    let before = arrived(&hot);
    let quiet = Offer::many(200, "now-and-then", |id| {
        Offer::marketing(&format!("quiet-{id}"), id)
    });
    let left_at = publisher.publish_at(50, &quiet).await;
    sleep(SECOND).await;
    let there = async || left_at.keys().all(|id| hot.scene.stub.first(id).is_some());
    eventually("all quiet accounts' jobs arrive", 20 * SECOND, there).await;
    let after = arrived(&hot);
    let took = hot.scene.stub.latencies(&left_at);
    let each: Vec<_> = after
        .iter()
        .map(|(account, count)| count - before.get(account).copied().unwrap_or(0))
        .collect();
    let (least, most) = (each.iter().min().unwrap(), each.iter().max().unwrap());
    println!(
        "figure: hot_many accounts={} least={least} most={most} quiet_p50_ms={} quiet_p99_ms={}",
        each.len(),
        millis(&took, 0.5),
        millis(&took, 0.99),
    );
    assert_eq!(each.len(), ACCOUNTS, "{after:?}");
    // One may have had one window more than another, and on a machine that is very busy another one.
    assert!(least + 2 * CEILING >= *most, "{each:?}");
    assert!(*least >= 2 * CEILING, "{each:?}");
    // In the shared queue, behind all of the backlogs, it was half a minute.
    assert!(millis(&took, 0.5) < 1_000, "{took:?}");
    stop(cluster).await;
    hot.end().await;
}

fn account(place: usize) -> String {
    format!("hot-{}", place % ACCOUNTS)
}

/// How many jobs of each account with a backlog have reached the carrier.
fn arrived(hot: &Hot) -> BTreeMap<String, u64> {
    let mut arrived = BTreeMap::new();
    for arrival in hot.scene.stub.arrivals() {
        if arrival.account.starts_with("hot-") {
            *arrived.entry(arrival.account).or_default() += 1;
        }
    }
    arrived
}
