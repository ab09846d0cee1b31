//! What a backlog costs.

use tokio::time::{Instant, sleep};

use super::super::{SECOND, highest};
use super::{CEILING, Hot, backlog};
use crate::support::flow::Flow;
use crate::support::heavy;
use crate::support::jobs::Offer;
use crate::support::rabbit::Rabbit;
use crate::support::scene::ACCOUNT;
use crate::support::worker::FALLBACKS;

/// Four workers drain a backlog: each job is delivered once, and every window is full.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backlog_is_delivered_once_and_uses_the_whole_ceiling() {
    let _alone = heavy().await;
    let hot = Hot::new("drain").await;
    let cluster = hot.start(4).await;
    hot.settle(&backlog(6_000, "marketing"), &cluster).await;

    let fallbacks = cluster.count(FALLBACKS, &[]).await;
    let before = Flow::of(&cluster, "marketing").await;
    let watch = hot.scene.watch().await;
    sleep(8 * SECOND).await;
    let windows = watch.finish().await;
    let flow = Flow::of(&cluster, "marketing").await - before;
    let fallbacks = cluster.count(FALLBACKS, &[]).await - fallbacks;
    cluster.stop().await;

    let highest = highest(&windows, CEILING);
    // The first may have begun before the watch, and the last goes on after it.
    let whole = &windows[1..windows.len() - 1];
    let used: u64 = whole.iter().map(|window| window.count).sum();
    let room = CEILING * whole.len() as u64;
    println!(
        "figure: hot_drain deliveries={} dispatched={} sheds={} windows={} used={used}/{room} highest={highest} fallbacks={fallbacks}",
        flow.deliveries,
        flow.dispatched,
        flow.sheds,
        whole.len(),
    );
    assert!(flow.dispatched >= 4 * CEILING, "{flow:?}");
    // The workers together may have some windows' jobs more in hand than before.
    let in_hand = 4 * CEILING;
    // What a worker decides without Redis, on a machine that is very busy, is not in its counter, and
    // its windows are its own.
    let by_redis = fallbacks == 0;
    let most = flow.dispatched + in_hand;
    assert!(!by_redis || flow.deliveries <= most, "{flow:?}");
    assert!(!by_redis || flow.sheds * 20 <= flow.dispatched, "{flow:?}");
    assert!(!by_redis || whole.len() >= 4, "{windows:?}");
    assert!(!by_redis || used * 100 >= room * 95, "{windows:?}");
    assert!(hot.scene.stub.duplicates().is_empty());
    hot.end().await;
}

/// The broker has no more to do while thousands wait. Around by the delay queue it would be tens of
/// times as much.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backlog_costs_the_broker_nothing_while_it_waits() {
    // A starting broker waits for whoever measures.
    let rabbit = Rabbit::start().await;
    let _alone = heavy().await;
    let mut hot = Hot::new("idle").await.set("AMQP__URL", &*rabbit.url());
    hot.scene.amqp = rabbit.url();
    let cluster = hot.start(1).await;
    let publisher = hot.scene.publisher().await;
    let jobs =
        |name: &str, account: &str| Offer::many(400, name, |id| Offer::marketing(account, id));
    // A worker and a broker that have just started do what they do once.
    publisher
        .publish_at(80, &jobs("first", "other")[..160])
        .await;
    let cpu = rabbit.cpu();
    publisher.publish_at(80, &jobs("alone", "quiet")).await;
    let alone = rabbit.cpu().saturating_sub(cpu);

    hot.settle(&backlog(10_000, "marketing"), &cluster).await;
    let (cpu, began) = (rabbit.cpu(), Instant::now());
    publisher.publish_at(80, &jobs("beside", ACCOUNT)).await;
    let beside = rabbit.cpu().saturating_sub(cpu);
    println!(
        "figure: hot_broker cpu_ms={} cpu_alone_ms={} took_ms={}",
        beside.as_millis(),
        alone.as_millis(),
        began.elapsed().as_millis()
    );
    // The kernel counts in ticks of 10 ms.
    assert!(beside < 2 * alone + SECOND / 20, "{beside:?}, {alone:?}");
    super::stop(cluster).await;
    hot.end().await;
}
