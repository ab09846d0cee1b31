//! What waits for an instant goes before it when something that it belongs to is cancelled.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use jiff::Timestamp;
use lanekeeper::dispatch::ports::{Due, WaitReason, WaitingJob};
use lanekeeper::domain::Lane;
use tokio::time::{Instant, sleep};

use super::broker::{FakeBroker, Fate};
use super::release::assert_pace;
use super::{LIMIT, Running, becomes_empty, ceiling, due_job, job, keep_all, left, of_account};
use crate::support::eventually;
use crate::support::postgres::TestDatabase;

/// Longer than a releaser takes to look at everything.
const A_FEW_ROUNDS: Duration = Duration::from_millis(900);

/// A job that is due in an hour, and belongs to a campaign, a journey and a batch; `-`: to none.
fn later(id: &str, [campaign, journey, batch]: [&str; 3]) -> WaitingJob {
    let some = |text: &str| (text != "-").then(|| text.into());
    let due = Timestamp::now() + Duration::from_secs(3_600);
    let mut job = job(id, WaitReason::NotBefore, Due::At(due));
    (job.campaign, job.journey, job.batch) = (some(campaign), some(journey), some(batch));
    job
}

/// So many of a batch `b`.
fn of_batch(count: usize) -> Vec<WaitingJob> {
    let one = |number| later(&format!("j-{number:04}"), ["c", "-", "b"]);
    (0..count).map(one).collect()
}

async fn hold(database: &TestDatabase, holds: &str) {
    let insert = format!("INSERT INTO holds VALUES {holds}");
    database.execute(&insert).await;
}

const CANCELLED_BATCH: &str = "('acme', 'batch', 'b', 'cancelled')";

#[tokio::test]
async fn what_is_cancelled_goes_long_before_it_is_due_and_nothing_else_does() {
    let table: [(&str, &[&str]); 8] = [
        ("('acme', 'account', 'acme', 'cancelled')", &["other"]),
        (
            "('acme', 'campaign', 'c', 'cancelled')",
            &["plain", "j", "jb", "other"],
        ),
        (
            "('acme', 'journey', 'j', 'cancelled')",
            &["plain", "c", "cb", "other"],
        ),
        (CANCELLED_BATCH, &["plain", "c", "j", "other"]),
        (
            "('acme', 'campaign', 'c', 'cancelled'), ('acme', 'journey', 'j', 'cancelled')",
            &["plain", "other"],
        ),
        (
            "('acme', 'campaign', 'c', 'paused'), ('acme', 'batch', 'b', 'cancelled')",
            &["plain", "c", "j", "other"],
        ),
        (
            "('acme', 'account', 'acme', 'paused')",
            &["plain", "c", "j", "cb", "jb", "cjb", "other"],
        ),
        // Of another kind with the same name.
        (
            "('acme', 'journey', 'c', 'cancelled'), ('acme', 'campaign', 'b', 'cancelled')",
            &["plain", "c", "j", "cb", "jb", "cjb", "other"],
        ),
    ];
    let mut jobs = vec![
        later("plain", ["-", "-", "-"]),
        later("c", ["c", "-", "-"]),
        later("j", ["-", "j", "-"]),
        later("cb", ["c", "-", "b"]),
        later("jb", ["-", "j", "b"]),
        later("cjb", ["c", "j", "b"]),
        of_account(later("other", ["c", "j", "b"]), "other"),
    ];
    jobs[3].lane = Lane::Transactional;
    for (holds, stay) in table {
        let database = TestDatabase::create().await;
        keep_all(&database, &jobs).await;
        let broker = FakeBroker::new();
        let releaser = Running::start(database.pool(), &broker, ceiling(100));
        hold(&database, holds).await;
        broker.has_stored(jobs.len() - stay.len()).await;
        sleep(Duration::from_millis(400)).await;
        releaser.stop().await;
        assert_eq!(left(&database).await, stay, "{holds}");
        assert_eq!(broker.ids().len(), jobs.len() - stay.len(), "{holds}");
    }
}

#[tokio::test]
async fn it_goes_at_its_ceilings_pace_and_once_with_two_releasers() {
    let database = TestDatabase::create().await;
    keep_all(&database, &of_batch(400)).await;
    let broker = FakeBroker::new();
    let pool = database.pool();
    let two = [(); 2].map(|()| Running::start(pool, &broker, ceiling(100)));
    sleep(A_FEW_ROUNDS).await;
    assert!(broker.stored().is_empty());

    hold(&database, CANCELLED_BATCH).await;
    let cancelled = Instant::now();
    broker.has_stored(1).await;
    assert!(cancelled.elapsed() < Duration::from_secs(2));
    becomes_empty(&database).await;
    for releaser in two {
        releaser.stop().await;
    }
    assert_pace(&broker.calls(), 100);
    let ids = broker.ids();
    let distinct: HashSet<_> = ids.iter().collect();
    assert_eq!((ids.len(), distinct.len()), (400, 400));
}

#[tokio::test]
async fn what_is_left_when_a_cancellation_is_lifted_waits_as_before() {
    let database = TestDatabase::create().await;
    keep_all(&database, &of_batch(100)).await;
    let instants = "SELECT id, due_at::text FROM waiting ORDER BY row_number";
    let instants = async || -> Vec<(String, String)> {
        let rows = sqlx::query_as(instants).fetch_all(database.pool());
        rows.await.unwrap()
    };
    let before = instants().await;
    let broker = FakeBroker::new();
    let releaser = Running::start(database.pool(), &broker, ceiling(20));
    hold(&database, CANCELLED_BATCH).await;
    broker.has_stored(40).await;
    database.execute("DELETE FROM holds").await;
    sleep(A_FEW_ROUNDS).await;
    let gone = broker.ids();
    sleep(A_FEW_ROUNDS).await;
    assert_eq!(broker.ids().len(), gone.len());
    let stay = before.into_iter().filter(|(id, _)| !gone.contains(id));
    assert_eq!(instants().await, stay.collect::<Vec<_>>());

    hold(&database, CANCELLED_BATCH).await;
    becomes_empty(&database).await;
    releaser.stop().await;
}

#[tokio::test]
async fn a_releaser_that_dies_half_way_leaves_the_rest_to_the_next() {
    let database = TestDatabase::create().await;
    keep_all(&database, &of_batch(60)).await;
    hold(&database, CANCELLED_BATCH).await;
    let broker = FakeBroker::new();
    let first = Running::start(database.pool(), &broker, ceiling(10));
    broker.has_stored(20).await;
    broker.decide(|_| Fate::Unanswered);
    broker.has_stored(25).await;
    first.task.abort();
    assert!(left(&database).await.len() >= 35);

    broker.decide(|_| Fate::Confirmed);
    let second = Running::start(database.pool(), &broker, ceiling(100));
    becomes_empty(&database).await;
    second.stop().await;
    let distinct: BTreeSet<_> = broker.ids().into_iter().collect();
    assert_eq!(distinct.len(), 60);
}

/// Some of a campaign are due and some are not: none of them comes twice.
#[tokio::test]
async fn what_is_due_and_cancelled_goes_once() {
    let database = TestDatabase::create().await;
    let mut jobs = of_batch(50);
    jobs.extend((0..50).map(|number| {
        let mut job = due_job(&format!("due-{number}"));
        job.batch = Some("b".into());
        job
    }));
    keep_all(&database, &jobs).await;
    hold(&database, CANCELLED_BATCH).await;
    let broker = FakeBroker::new();
    let releaser = Running::start(database.pool(), &broker, ceiling(1_000));
    becomes_empty(&database).await;
    releaser.stop().await;
    assert_eq!(broker.ids().len(), 100);
}

#[tokio::test]
async fn it_goes_where_the_ceiling_lets_none_through_whether_it_is_due_or_not() {
    let database = TestDatabase::create().await;
    let mut due = due_job("due");
    due.batch = Some("b".into());
    let jobs = [
        due,
        later("later", ["-", "-", "b"]),
        due_job("other"),
        later("plain", ["-", "-", "-"]),
    ];
    keep_all(&database, &jobs).await;
    hold(&database, CANCELLED_BATCH).await;
    let broker = FakeBroker::new();
    let releaser = Running::start(database.pool(), &broker, ceiling(0));
    broker.has_stored(2).await;
    sleep(A_FEW_ROUNDS).await;
    releaser.stop().await;
    assert_eq!(left(&database).await, ["other", "plain"]);
}

/// The batches whose jobs are looked for.
async fn looked_for(database: &TestDatabase) -> Vec<String> {
    let select = "SELECT target FROM holds WHERE ending_since IS NOT NULL ORDER BY target";
    let targets = sqlx::query_scalar(select).fetch_all(database.pool());
    targets.await.unwrap()
}

/// Cancellations of long ago would otherwise be asked about four times a second, for ever.
#[tokio::test]
async fn a_cancellation_is_looked_after_until_an_hour_later_nothing_of_it_waits() {
    let database = TestDatabase::create().await;
    let batch = |name: &str| later(name, ["-", "-", name]);
    keep_all(&database, &[batch("left")]).await;
    hold(
        &database,
        "('acme', 'batch', 'done', 'cancelled'), ('acme', 'batch', 'left', 'cancelled'),
         ('acme', 'batch', 'new', 'cancelled'), ('acme', 'batch', 'paused', 'paused'),
         ('acme', 'batch', 'turned', 'paused')",
    )
    .await;
    database
        .execute("UPDATE holds SET state = 'cancelled' WHERE target = 'turned'")
        .await;
    assert_eq!(
        looked_for(&database).await,
        ["done", "left", "new", "turned"]
    );
    database
        .execute(
            "UPDATE holds SET ending_since = now() - interval '61 minutes'
             WHERE target IN ('done', 'left')",
        )
        .await;
    let broker = FakeBroker::new();
    // It cannot release what is left.
    broker.decide(|_| Fate::Refused);
    let releaser = Running::start(database.pool(), &broker, ceiling(100));
    eventually(
        "what is done is looked after no longer",
        LIMIT,
        async || looked_for(&database).await == ["left", "new", "turned"],
    )
    .await;
    releaser.stop().await;

    // Whoever cancels once more has it looked for once more.
    database
        .execute("UPDATE holds SET state = 'cancelled' WHERE target = 'done'")
        .await;
    assert!(looked_for(&database).await.contains(&"done".to_owned()));
}
