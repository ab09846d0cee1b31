//! From the first shed to the end of the queue.

use super::{SECOND, Warm};
use crate::support::jobs::Offer;
use crate::support::own_queues::{Own, OwnQueues};
use crate::support::worker::{Cluster, Worker};
use crate::support::{eventually, heavy};

const HOT: &str = "hot";

fn bulk(count: usize) -> Vec<Offer> {
    Offer::many(count, "bulk", |id| Offer::marketing(HOT, id))
}

#[tokio::test]
async fn an_account_under_pressure_has_a_queue_until_it_has_long_not_needed_it() {
    let warm = Warm::start("life").await;
    let _alone = heavy().await;
    let cluster = Cluster::start(2, &warm.scene.config).await;
    let publisher = warm.scene.publisher().await;
    publisher.publish_all(&bulk(200)).await;
    let name = warm.open_queue(HOT).await;
    let later = Offer::many(50, "later", |id| Offer::marketing(HOT, id));
    publisher.publish_all(&later).await;
    warm.scene.stub.wait_for(250, 30 * SECOND).await;
    assert!(warm.scene.stub.duplicates().is_empty());
    let gone = async || warm.listed().await.is_empty();
    eventually("it shares again", 20 * SECOND, gone).await;
    assert_eq!(warm.unlisted().await, Vec::<String>::new());
    let counts = ["lanekeeper_splits_total", "lanekeeper_merges_total"];
    for count in counts {
        assert_eq!(
            cluster.count(count, &[("lane", "marketing")]).await,
            1,
            "{count}"
        );
    }
    // And may have another, by another name.
    publisher
        .publish_all(&Offer::many(200, "again", |id| Offer::marketing(HOT, id)))
        .await;
    let other = warm.open_queue(HOT).await;
    assert_ne!(name, other);
    warm.scene.stub.wait_for(450, 30 * SECOND).await;
    cluster.stop().await;
    warm.scene.end().await;
}

#[tokio::test]
async fn a_worker_that_starts_consumes_from_the_queues_that_are_listed() {
    let warm = Warm::lasting("start").await;
    let _alone = heavy().await;
    let first = Worker::start(&warm.scene.config).await;
    let publisher = warm.scene.publisher().await;
    publisher.publish_all(&bulk(120)).await;
    let name = warm.open_queue(HOT).await;
    warm.scene.stub.wait_for(120, 20 * SECOND).await;
    first.stop().await;
    publisher
        .publish_all(&Offer::many(30, "kept", |id| Offer::marketing(HOT, id)))
        .await;
    let queues = warm.scene.queues().await;
    eventually("they lie there", 20 * SECOND, async || {
        queues.ready(&name).await == 30
    })
    .await;
    let second = Worker::start(&warm.scene.config).await;
    warm.scene.stub.wait_for(150, 10 * SECOND).await;
    second.stop().await;
    warm.scene.end().await;
}

/// As many accounts as there are spare queues get those that are there, and wait for none to be made.
#[tokio::test]
async fn accounts_that_come_together_get_the_spare_queues_that_are_there() {
    const SPARE: usize = 5;
    let mut warm = Warm::lasting("together").await;
    warm.scene = warm.scene.set("HOT__SPARE", SPARE);
    let _alone = heavy().await;
    let worker = Worker::start(&warm.scene.config).await;
    let mut there = Vec::new();
    let are_made = async || {
        there = spare(&warm, "marketing").await;
        there.len() >= SPARE && spare(&warm, "transactional").await.len() >= SPARE
    };
    eventually("spare queues", 20 * SECOND, are_made).await;
    assert_eq!(there.len(), SPARE);

    let offers: Vec<_> = (0..SPARE * 120)
        .map(|place| Offer::marketing(&format!("hot-{}", place % SPARE), format!("bulk-{place}")))
        .collect();
    warm.scene.publisher().await.publish_all(&offers).await;
    let all_have_one = async || warm.listed().await.len() == SPARE;
    eventually("queues of their own", 20 * SECOND, all_have_one).await;
    let listed = warm.listed().await;
    let numbers: Vec<_> = listed.iter().map(|(_, _, number, _)| *number).collect();
    assert_eq!(numbers, there);
    worker.stop().await;
    warm.scene.end().await;
}

/// The numbers of a lane's spare queues.
async fn spare(warm: &Warm, lane: &str) -> Vec<i64> {
    let rows = "SELECT number FROM hot_queues WHERE state = 'spare' AND lane = $1 ORDER BY number";
    sqlx::query_scalar(rows)
        .bind(lane)
        .fetch_all(warm.database.pool())
        .await
        .unwrap()
}

/// Above the bound accounts share as they always did.
#[tokio::test]
async fn there_are_no_more_queues_than_may_be() {
    let mut warm = Warm::lasting("bound").await;
    warm.scene = warm.scene.set("HOT__MOST", 1);
    let _alone = heavy().await;
    let worker = Worker::start(&warm.scene.config).await;
    let publisher = warm.scene.publisher().await;
    publisher.publish_all(&bulk(200)).await;
    warm.open_queue(HOT).await;
    let others = Offer::many(120, "other", |id| Offer::marketing("other", id));
    publisher.publish_all(&others).await;
    let declined = async || {
        let count = worker.count("lanekeeper_splits_declined_total", &[("lane", "marketing")]);
        count.await > 0
    };
    eventually("it is declined", 10 * SECOND, declined).await;
    assert_eq!(warm.listed().await.len(), 1);
    warm.scene.stub.wait_for(320, 30 * SECOND).await;
    assert!(warm.scene.stub.duplicates().is_empty());
    worker.stop().await;
    warm.scene.end().await;
}

/// Somebody has deleted the queue by hand: its account shares meanwhile.
#[tokio::test]
async fn an_account_whose_queue_was_deleted_gets_another_when_it_needs_one() {
    let warm = Warm::lasting("deleted").await;
    let _alone = heavy().await;
    let worker = Worker::start(&warm.scene.config).await;
    let publisher = warm.scene.publisher().await;
    publisher.publish_all(&bulk(120)).await;
    let name = warm.open_queue(HOT).await;
    warm.scene.stub.wait_for(120, 20 * SECOND).await;
    let queues = warm.scene.queues().await;
    queues.delete(&name).await;
    publisher
        .publish_all(&Offer::many(400, "more", |id| Offer::marketing(HOT, id)))
        .await;
    // By another name: of the old one nobody knows whether it would be safe again.
    let other = async || {
        let listed = warm.listed().await;
        listed
            .iter()
            .any(|row| row.3 == "open" && !name.ends_with(&format!(".{}", row.2)))
    };
    eventually("it has another", 20 * SECOND, other).await;
    warm.scene.stub.wait_for(520, 30 * SECOND).await;
    worker.stop().await;
    warm.scene.end().await;
}

/// A database that was restored gives out numbers again. Whose jobs lie in such a queue, and who still
/// sends some there, it does not know.
#[tokio::test]
async fn a_queue_that_is_there_already_is_left_alone() {
    const LEFT: i64 = 4;
    let warm = Warm::lasting("strange").await;
    let _alone = heavy().await;
    warm.scene.declare().await;
    let made = OwnQueues::connect(&warm.scene).await;
    for number in 1..=LEFT {
        made.fill(&Own::open(number, "somebody", 1)).await;
    }
    let worker = Worker::start(&warm.scene.config).await;
    let publisher = warm.scene.publisher().await;
    publisher.publish_all(&bulk(200)).await;
    let name = warm.open_queue(HOT).await;
    warm.scene.stub.wait_for(200, 30 * SECOND).await;
    let number: i64 = name.rsplit('.').next().unwrap().parse().unwrap();
    assert!(number > LEFT, "{name}");
    let queues = warm.scene.queues().await;
    for number in 1..=LEFT {
        assert_eq!(queues.ready(&format!("marketing.hot.{number}")).await, 1);
    }
    worker.stop().await;
    warm.scene.end().await;
}
