//! What waits in an account's own queue, and what does not.

use tokio::time::Instant;

use super::{SECOND, Warm};
use crate::support::jobs::Offer;
use crate::support::worker::Worker;
use crate::support::{eventually, heavy};

const HOT: &str = "hot";

fn bulk(count: usize, name: &str) -> Vec<Offer> {
    Offer::many(count, name, |id| Offer::marketing(HOT, id))
}

async fn sheds(worker: &Worker, limit: &str) -> u64 {
    let labels = [("lane", "marketing"), ("limit", limit)];
    worker.count("lanekeeper_sheds_total", &labels).await
}

/// Makes the account hot, and waits until nothing of it is left on the way there.
async fn heat(warm: &Warm, worker: &Worker) -> String {
    let publisher = warm.scene.publisher().await;
    publisher.publish_all(&bulk(120, "first")).await;
    let name = warm.open_queue(HOT).await;
    warm.scene.stub.wait_for(120, 20 * SECOND).await;
    assert!(sheds(worker, "lane").await > 0);
    name
}

#[tokio::test]
async fn jobs_over_the_ceiling_are_held_and_not_shed() {
    let warm = Warm::lasting("held").await;
    let _alone = heavy().await;
    let worker = Worker::start(&warm.scene.config).await;
    heat(&warm, &worker).await;
    let before = sheds(&worker, "lane").await;
    let delivered = || worker.count("lanekeeper_deliveries_total", &[("lane", "marketing")]);
    let deliveries = delivered().await;
    let publisher = warm.scene.publisher().await;
    publisher.publish_all(&bulk(300, "second")).await;
    warm.scene.stub.wait_for(420, 30 * SECOND).await;
    assert_eq!(sheds(&worker, "lane").await, before);
    assert_eq!(delivered().await - deliveries, 300);
    worker.stop().await;
    warm.scene.end().await;
}

/// A ceiling of 32 lets 320 through in the ten seconds for which a job is held at most; with a prefetch of
/// that much nobody is held for longer. Under a ceiling that was lowered meanwhile some are.
#[tokio::test]
async fn a_job_that_is_held_for_ten_seconds_is_shed() {
    let warm = Warm::lasting("long").await;
    let _alone = heavy().await;
    let worker = Worker::start(&warm.scene.config).await;
    heat(&warm, &worker).await;
    let before = sheds(&worker, "lane").await;
    let publisher = warm.scene.publisher().await;
    let began = Instant::now();
    publisher.publish_all(&bulk(200, "second")).await;
    // What the worker holds now goes at one a second from now on.
    warm.database
        .execute("INSERT INTO accounts (account_id, budget_per_second, reserve_percent) VALUES ('hot', 1, 0)")
        .await;
    let shed = async || sheds(&worker, "lane").await > before;
    eventually("some are shed", 20 * SECOND, shed).await;
    assert!(began.elapsed() >= 10 * SECOND, "{:?}", began.elapsed());
    warm.database
        .execute("UPDATE accounts SET budget_per_second = 40")
        .await;
    warm.scene.stub.wait_for(320, 30 * SECOND).await;
    assert!(warm.scene.stub.duplicates().is_empty());
    worker.stop().await;
    warm.scene.end().await;
}

#[tokio::test]
async fn the_queue_of_a_paused_account_is_left_alone_until_it_goes_on() {
    let warm = Warm::lasting("paused").await;
    let _alone = heavy().await;
    let worker = Worker::start(&warm.scene.config).await;
    let name = heat(&warm, &worker).await;
    let queues = warm.scene.queues().await;
    warm.database
        .execute("INSERT INTO holds (account_id, kind, target, state) VALUES ('hot', 'account', 'hot', 'paused')")
        .await;
    eventually("it is left", 10 * SECOND, async || {
        warm.consumers(&name).await == "0"
    })
    .await;
    let publisher = warm.scene.publisher().await;
    publisher.publish_all(&bulk(40, "second")).await;
    eventually("they lie there", 20 * SECOND, async || {
        queues.ready(&name).await == 40
    })
    .await;
    warm.database.execute("DELETE FROM holds").await;
    warm.scene.stub.wait_for(160, 15 * SECOND).await;
    worker.stop().await;
    warm.scene.end().await;
}

#[tokio::test]
async fn the_queue_of_a_lane_without_a_ceiling_is_left_alone() {
    let warm = Warm::lasting("zero").await;
    let _alone = heavy().await;
    let worker = Worker::start(&warm.scene.config).await;
    let name = heat(&warm, &worker).await;
    let queues = warm.scene.queues().await;
    warm.database
        .execute("INSERT INTO accounts (account_id, reserve_percent) VALUES ('hot', 100)")
        .await;
    let publisher = warm.scene.publisher().await;
    let left = async || warm.consumers(&name).await == "0";
    eventually("it is left", 10 * SECOND, left).await;
    publisher.publish_all(&bulk(10, "second")).await;
    eventually("they lie there", 20 * SECOND, async || {
        queues.ready(&name).await == 10
    })
    .await;
    // Passwords of the account have another lane and another queue.
    publisher.publish_all(&[Offer::otp(HOT, "code")]).await;
    warm.scene.stub.wait_for(121, 10 * SECOND).await;
    worker.stop().await;
    warm.scene.end().await;
}

/// Jobs that wait for their number's ceiling would otherwise keep all others of the account waiting.
#[tokio::test]
async fn jobs_that_wait_for_something_else_do_not_stay_in_front() {
    let warm = Warm::lasting("number").await;
    let _alone = heavy().await;
    let worker = Worker::start(&warm.scene.config).await;
    heat(&warm, &worker).await;
    warm.database
        .execute(
            "INSERT INTO accounts (account_id) VALUES ('hot');
            INSERT INTO ceilings VALUES ('hot', 'number', '+447700900999', 1)",
        )
        .await;
    let publisher = warm.scene.publisher().await;
    let slow = Offer::many(200, "slow", |id| {
        Offer::marketing(HOT, id).with("from", "+447700900999")
    });
    publisher.publish_all(&slow).await;
    publisher.publish_all(&bulk(30, "quick")).await;
    let quick = async || {
        let arrivals = warm.scene.stub.arrivals();
        arrivals
            .iter()
            .filter(|one| one.id.starts_with("quick"))
            .count()
            == 30
    };
    eventually("the others are sent", 15 * SECOND, quick).await;
    assert!(sheds(&worker, "number").await > 0);
    worker.stop().await;
    warm.scene.end().await;
}

/// Anybody can publish another account's job to a hot queue by its name: it is metered as that account's,
/// and not held there.
#[tokio::test]
async fn another_accounts_job_in_the_queue_is_its_own_accounts() {
    let warm = Warm::lasting("foreign").await;
    let _alone = heavy().await;
    let worker = Worker::start(&warm.scene.config).await;
    let name = heat(&warm, &worker).await;
    let publisher = warm.scene.publisher().await;
    let counted = warm.scene.watch_of("guest").await;
    let foreign = Offer::many(60, "foreign", |id| Offer::marketing("guest", id));
    publisher.publish_to_queue(&name, &foreign).await;
    publisher.publish_all(&bulk(60, "second")).await;
    warm.scene.stub.wait_for(240, 20 * SECOND).await;
    let arrivals = warm.scene.stub.arrivals();
    let theirs = arrivals.iter().filter(|one| one.account == "guest").count();
    assert_eq!(theirs, 60);
    let windows = counted.finish().await;
    let counted: u64 = windows.iter().map(|window| window.count).sum();
    assert!(counted >= 30, "in the guest's own counter: {windows:?}");
    worker.stop().await;
    warm.scene.end().await;
}
