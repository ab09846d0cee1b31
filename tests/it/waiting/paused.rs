//! Paused jobs go when nothing that they belong to is paused any more, or something is cancelled.

use std::collections::BTreeSet;
use std::time::Duration;

use lanekeeper::dispatch::ports::{Due, WaitReason, WaitingJob};
use tokio::time::{Instant, sleep};

use super::broker::FakeBroker;
use super::{Running, becomes_empty, ceiling, job, keep_all, left, paused_job};
use crate::support::postgres::TestDatabase;

/// A paused job that belongs to a campaign, a journey and a batch; `-`: to none.
fn of(id: &str, campaign: &str, journey: &str, batch: &str) -> WaitingJob {
    let some = |text: &str| (text != "-").then(|| text.into());
    let mut job = job(id, WaitReason::Paused, Due::Resumed);
    (job.campaign, job.journey, job.batch) = (some(campaign), some(journey), some(batch));
    job
}

/// Longer than a releaser takes to look at everything.
const A_FEW_ROUNDS: Duration = Duration::from_millis(900);

#[tokio::test]
async fn holds_decide_which_jobs_stay() {
    // Holds, and the jobs that stay.
    let table: [(&str, &[&str]); 10] = [
        ("", &[]),
        (
            "('acme', 'account', 'acme', 'paused')",
            &["plain", "c", "j", "cb", "jb", "cjb"],
        ),
        ("('acme', 'campaign', 'c', 'paused')", &["c", "cb", "cjb"]),
        ("('acme', 'journey', 'j', 'paused')", &["j", "jb", "cjb"]),
        ("('acme', 'batch', 'b', 'paused')", &["cb", "jb", "cjb"]),
        (
            "('acme', 'campaign', 'c', 'paused'), ('acme', 'journey', 'j', 'paused')",
            &["c", "j", "cb", "jb", "cjb"],
        ),
        (
            "('acme', 'campaign', 'c', 'paused'), ('acme', 'batch', 'b', 'cancelled')",
            &["c"],
        ),
        (
            "('acme', 'account', 'acme', 'paused'), ('acme', 'journey', 'j', 'cancelled')",
            &["plain", "c", "cb"],
        ),
        (
            "('acme', 'account', 'acme', 'cancelled'), ('acme', 'campaign', 'c', 'paused')",
            &[],
        ),
        // Of another account, or of another kind with the same name.
        (
            "('other', 'campaign', 'c', 'paused'), ('acme', 'journey', 'c', 'paused'),
             ('acme', 'campaign', 'j', 'paused')",
            &[],
        ),
    ];
    let jobs = [
        of("plain", "-", "-", "-"),
        of("c", "c", "-", "-"),
        of("j", "-", "j", "-"),
        of("cb", "c", "-", "b"),
        of("jb", "-", "j", "b"),
        of("cjb", "c", "j", "b"),
    ];
    for (holds, stay) in table {
        let database = TestDatabase::create().await;
        if !holds.is_empty() {
            database
                .execute(&format!("INSERT INTO holds VALUES {holds}"))
                .await;
        }
        keep_all(&database, &jobs).await;
        let broker = FakeBroker::new();
        let releaser = Running::start(database.pool(), &broker, ceiling(100));
        broker.has_stored(jobs.len() - stay.len()).await;
        sleep(Duration::from_millis(400)).await;
        releaser.stop().await;
        assert_eq!(left(&database).await, stay, "{holds}");
    }
}

#[tokio::test]
async fn the_same_name_in_another_place_is_another_group() {
    let database = TestDatabase::create().await;
    database
        .execute("INSERT INTO holds VALUES ('acme', 'campaign', 'x', 'paused')")
        .await;
    let jobs = [
        of("campaign", "x", "-", "-"),
        of("journey", "-", "x", "-"),
        of("batch", "-", "-", "x"),
    ];
    keep_all(&database, &jobs).await;
    let broker = FakeBroker::new();
    let releaser = Running::start(database.pool(), &broker, ceiling(100));
    broker.has_stored(2).await;
    sleep(Duration::from_millis(400)).await;
    releaser.stop().await;
    assert_eq!(left(&database).await, ["campaign"]);
}

#[tokio::test]
async fn resumed_jobs_start_within_two_seconds_and_stay_under_the_ceiling() {
    let database = TestDatabase::create().await;
    database
        .execute("INSERT INTO holds VALUES ('acme', 'campaign', 'c', 'paused')")
        .await;
    let jobs: Vec<_> = (0..300)
        .map(|n| paused_job(&format!("j-{n}"), "c"))
        .collect();
    keep_all(&database, &jobs).await;
    let broker = FakeBroker::new();
    let releaser = Running::start(database.pool(), &broker, ceiling(50));
    sleep(A_FEW_ROUNDS).await;
    assert!(broker.stored().is_empty());

    database.execute("DELETE FROM holds").await;
    let resumed = Instant::now();
    broker.has_stored(1).await;
    assert!(resumed.elapsed() < Duration::from_secs(2));
    broker.has_stored(150).await;
    let took = resumed.elapsed();
    // 100 at once, and 50 in a second.
    assert!(took > Duration::from_millis(900), "150 within {took:?}");
    releaser.stop().await;
}

#[tokio::test]
async fn what_is_paused_again_stays() {
    let database = TestDatabase::create().await;
    let jobs: Vec<_> = (0..100)
        .map(|n| paused_job(&format!("j-{n}"), "c"))
        .collect();
    keep_all(&database, &jobs).await;
    let broker = FakeBroker::new();
    let releaser = Running::start(database.pool(), &broker, ceiling(20));
    broker.has_stored(40).await;
    database
        .execute("INSERT INTO holds VALUES ('acme', 'campaign', 'c', 'paused')")
        .await;
    sleep(A_FEW_ROUNDS).await;
    let before = broker.stored().len();
    sleep(A_FEW_ROUNDS).await;
    releaser.stop().await;
    assert_eq!(broker.stored().len(), before);
    assert_eq!(left(&database).await.len(), 100 - before);
}

#[tokio::test]
async fn a_campaign_does_not_wait_until_another_has_gone() {
    let database = TestDatabase::create().await;
    let mut jobs: Vec<_> = (0..2_000)
        .map(|n| paused_job(&format!("a-{n}"), "long"))
        .collect();
    jobs.push(paused_job("b", "short"));
    keep_all(&database, &jobs).await;
    let broker = FakeBroker::new();
    let releaser = Running::start(database.pool(), &broker, ceiling(100));
    let short_gone = async || broker.ids().contains(&"b".to_owned());
    crate::support::eventually(
        "the short one has gone",
        Duration::from_secs(10),
        short_gone,
    )
    .await;
    releaser.stop().await;
    assert!(
        left(&database).await.len() > 500,
        "long before the other has gone"
    );
}

#[tokio::test]
async fn due_and_resumed_jobs_share_the_ceiling() {
    let database = TestDatabase::create().await;
    let mut jobs = super::due_jobs(1_000);
    jobs.extend((0..1_000).map(|n| paused_job(&format!("p-{n}"), "c")));
    keep_all(&database, &jobs).await;
    let broker = FakeBroker::new();
    let releaser = Running::start(database.pool(), &broker, ceiling(50));
    let kinds = async || {
        let ids = broker.ids();
        let kinds: BTreeSet<_> = ids.iter().map(|id| id.as_bytes()[0]).collect();
        kinds.len() == 2
    };
    crate::support::eventually("some of both have gone", Duration::from_secs(15), kinds).await;
    releaser.stop().await;
}

/// More groups than are looked at in one go, most of which stay.
#[tokio::test]
async fn every_group_is_found_among_many() {
    let database = TestDatabase::create().await;
    database
        .execute(
            "INSERT INTO holds SELECT 'acme', 'batch', 'b' || n, 'paused'
             FROM generate_series(0, 2999) AS n WHERE n % 1000 <> 7",
        )
        .await;
    let jobs: Vec<_> = (0..3_000)
        .map(|n| of(&format!("j-{n}"), "c", "-", &format!("b{n}")))
        .collect();
    keep_all(&database, &jobs).await;
    let broker = FakeBroker::new();
    let releaser = Running::start(database.pool(), &broker, ceiling(100));
    broker.has_stored(3).await;
    let found: BTreeSet<_> = broker.ids().into_iter().collect();
    assert_eq!(
        found,
        BTreeSet::from(["j-7", "j-1007", "j-2007"].map(str::to_owned))
    );
    database.execute("DELETE FROM holds").await;
    releaser.stop().await;

    let releaser = Running::start(database.pool(), &broker, ceiling(100_000));
    becomes_empty(&database).await;
    releaser.stop().await;
    assert_eq!(broker.ids().len(), 3_000);
}

#[tokio::test]
async fn cancelled_jobs_go_even_where_the_ceiling_lets_none_through() {
    let database = TestDatabase::create().await;
    database
        .execute("INSERT INTO holds VALUES ('acme', 'campaign', 'off', 'cancelled')")
        .await;
    keep_all(
        &database,
        &[paused_job("off", "off"), paused_job("on", "on")],
    )
    .await;
    let broker = FakeBroker::new();
    let releaser = Running::start(database.pool(), &broker, ceiling(0));
    broker.has_stored(1).await;
    sleep(A_FEW_ROUNDS).await;
    releaser.stop().await;
    assert_eq!(left(&database).await, ["on"]);
}
