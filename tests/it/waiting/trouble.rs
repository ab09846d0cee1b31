//! Brokers and databases that fail, and releasers that are cut off half-way.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use lanekeeper::telemetry::ReleaseTrouble;
use lanekeeper::waiting::keep;
use tokio::time::{Instant, sleep, timeout};

use super::broker::{FakeBroker, Fate};
use super::{
    CONFIRM_TIMEOUT, LIMIT, Running, becomes_empty, ceiling, due_job, due_jobs, keep_all, left,
    of_account, paused_job,
};
use crate::support::eventually;
use crate::support::postgres::{PrivatePostgres, TestDatabase};

fn failures(releaser: &Running, trouble: ReleaseTrouble) -> u64 {
    let counts = releaser.telemetry.counts();
    counts.release_failures.get(trouble as usize, 0)
}

#[tokio::test]
async fn what_the_broker_does_not_confirm_stays() {
    let database = TestDatabase::create().await;
    keep_all(&database, &due_jobs(300)).await;
    let broker = FakeBroker::new();
    let failing = Arc::new(AtomicBool::new(true));
    let fails = Arc::clone(&failing);
    broker.decide(move |job| {
        let refused = fails.load(Relaxed) && job.id.as_str().ends_with('3');
        if refused {
            Fate::Refused
        } else {
            Fate::Confirmed
        }
    });
    let releaser = Running::start(database.pool(), &broker, ceiling(10_000));
    eventually("only the refused ones are left", LIMIT, async || {
        left(&database).await.len() == 30
    })
    .await;
    assert!(left(&database).await.iter().all(|id| id.ends_with('3')));
    assert_eq!(broker.ids().len(), 270);
    assert!(failures(&releaser, ReleaseTrouble::Broker) > 0);

    failing.store(false, Relaxed);
    becomes_empty(&database).await;
    releaser.stop().await;
    let ids = broker.ids();
    assert_eq!(
        (ids.len(), ids.iter().collect::<HashSet<_>>().len()),
        (300, 300)
    );
}

/// As a crash between the publish and the deletion: the jobs come twice, and none is lost.
#[tokio::test]
async fn what_was_published_and_not_deleted_is_published_again() {
    let database = TestDatabase::create().await;
    keep_all(&database, &due_jobs(50)).await;
    let broker = FakeBroker::new();
    broker.decide(|_| Fate::Unanswered);
    let first = Running::start(database.pool(), &broker, ceiling(100));
    broker.has_stored(50).await;
    assert_eq!(left(&database).await.len(), 50);
    first.task.abort();

    broker.decide(|_| Fate::Confirmed);
    let second = Running::start(database.pool(), &broker, ceiling(100));
    becomes_empty(&database).await;
    second.stop().await;
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for id in broker.ids() {
        *times.entry(id).or_default() += 1;
    }
    assert_eq!(times.len(), 50);
    assert!(times.values().all(|times| *times == 2));
}

#[tokio::test]
async fn a_publish_that_hangs_holds_up_no_other_account_and_no_end() {
    let database = TestDatabase::create().await;
    let mut jobs = vec![of_account(due_job("hangs"), "a")];
    jobs.extend((0..20).map(|n| of_account(due_job(&format!("goes-{n}")), &format!("b{n}"))));
    keep_all(&database, &jobs).await;
    let broker = FakeBroker::new();
    broker.decide(|job| match job.id.as_str() {
        "hangs" => Fate::Unanswered,
        _ => Fate::Confirmed,
    });
    // The one that hangs is given up later than all others must have gone.
    let releaser = Running::with_patience(database.pool(), &broker, ceiling(100), LIMIT);
    eventually("all others have gone", LIMIT, async || {
        left(&database).await == ["hangs"]
    })
    .await;
    releaser.stop().await;
}

/// The settings allow a broker up to a minute: neither the turn nor the server ends it before.
#[tokio::test]
async fn what_is_confirmed_late_but_in_time_is_published_once() {
    let database = TestDatabase::create().await;
    keep_all(&database, &due_jobs(5)).await;
    let broker = FakeBroker::new();
    broker.decide(|_| Fate::ConfirmedAfter(Duration::from_secs(16)));
    let own = database.database();
    let minute = Duration::from_secs(60);
    let releaser = Running::with_patience(own.pool(), &broker, ceiling(100), minute);
    becomes_empty(&database).await;
    assert_eq!(broker.ids().len(), 5);
    for trouble in [ReleaseTrouble::Broker, ReleaseTrouble::Database] {
        assert_eq!(failures(&releaser, trouble), 0);
    }
    releaser.stop().await;
}

#[tokio::test]
async fn what_is_not_confirmed_in_time_is_the_brokers_failure_and_goes_again() {
    let database = TestDatabase::create().await;
    keep_all(&database, &due_jobs(5)).await;
    let broker = FakeBroker::new();
    broker.decide(|_| Fate::Unanswered);
    let soon = Duration::from_millis(100);
    let releaser = Running::with_patience(database.pool(), &broker, ceiling(100), soon);
    let failed = async || failures(&releaser, ReleaseTrouble::Broker) > 0;
    eventually("it is given up", CONFIRM_TIMEOUT, failed).await;
    assert_eq!(failures(&releaser, ReleaseTrouble::Database), 0);
    assert_eq!(left(&database).await.len(), 5);
    broker.decide(|_| Fate::Confirmed);
    becomes_empty(&database).await;
    releaser.stop().await;
}

#[tokio::test]
async fn a_broker_that_is_away_is_asked_seldom_and_found_again() {
    let database = TestDatabase::create().await;
    keep_all(&database, &due_jobs(20)).await;
    let broker = FakeBroker::new();
    broker.decide(|_| Fate::Refused);
    let releaser = Running::start(database.pool(), &broker, ceiling(100));
    sleep(Duration::from_secs(3)).await;
    let asked = broker.calls().len();
    assert!(
        (2..=12).contains(&asked),
        "asked {asked} times in three seconds"
    );
    assert_eq!(left(&database).await.len(), 20);

    broker.decide(|_| Fate::Confirmed);
    let back = Instant::now();
    becomes_empty(&database).await;
    assert!(back.elapsed() < Duration::from_secs(6));
    releaser.stop().await;
}

#[tokio::test]
async fn a_database_that_stops_and_comes_back_loses_nothing() {
    let mut server = PrivatePostgres::start_migrated().await;
    let database = server.database();
    let jobs = due_jobs(200);
    keep(database.pool(), &jobs).await.unwrap();
    let broker = FakeBroker::new();
    let releaser = Running::start(database.pool(), &broker, ceiling(50));
    broker.has_stored(100).await;
    server.stop().await;
    let failed = async || failures(&releaser, ReleaseTrouble::Database) > 0;
    eventually("the outage is counted", LIMIT, failed).await;
    server.restart().await;
    let gone = async || {
        let count = sqlx::query_scalar("SELECT count(*) FROM waiting");
        count
            .fetch_one(database.pool())
            .await
            .is_ok_and(|count: i64| count == 0)
    };
    eventually("the rest has gone", LIMIT, gone).await;
    releaser.stop().await;
    let ids: HashSet<_> = broker.ids().into_iter().collect();
    assert_eq!(ids.len(), 200);
}

#[tokio::test]
async fn a_frozen_database_keeps_no_worker_from_stopping() {
    let mut server = PrivatePostgres::start_migrated().await;
    let database = server.database();
    keep(database.pool(), &due_jobs(200)).await.unwrap();
    let broker = FakeBroker::new();
    let releaser = Running::start(database.pool(), &broker, ceiling(50));
    broker.has_stored(100).await;
    server.freeze();
    sleep(Duration::from_millis(500)).await;
    releaser.stop().await;
    server.thaw();
    let closing = timeout(LIMIT, database.pool().close()).await;
    closing.expect("no connection is stuck");
}

/// As when the count takes longer than the server allows: it is for a metric, and no job waits for it.
#[tokio::test]
async fn a_count_that_fails_holds_up_no_release() {
    let database = TestDatabase::create().await;
    // Found before the server's own, by which a table's size is asked.
    let shadow = format!(
        "CREATE FUNCTION pg_relation_size(regclass) RETURNS bigint LANGUAGE plpgsql
             AS $$ BEGIN RAISE query_canceled; END $$;
         ALTER DATABASE {} SET search_path = public, pg_catalog",
        database.name()
    );
    database.execute(&shadow).await;
    let own = database.database();
    let counting = sqlx::query("SELECT pg_relation_size('waiting')").execute(own.pool());
    assert!(counting.await.is_err(), "counting fails");
    keep_all(&database, &due_jobs(10)).await;
    let broker = FakeBroker::new();
    let releaser = Running::start(own.pool(), &broker, ceiling(100));
    becomes_empty(&database).await;
    assert_eq!(failures(&releaser, ReleaseTrouble::Database), 0);
    releaser.stop().await;
}

/// Longer than any other question, and less than a releaser's statements may take.
#[tokio::test]
async fn holds_that_are_slow_to_look_up_hold_up_no_release() {
    let database = TestDatabase::create().await;
    database
        .execute(
            "ALTER TABLE holds RENAME TO quick;
             CREATE VIEW holds AS
                 WITH slow AS MATERIALIZED (SELECT pg_sleep(1.5)) SELECT quick.* FROM quick, slow;
             INSERT INTO quick VALUES ('acme', 'account', 'acme', 'cancelled')",
        )
        .await;
    let own = database.database();
    let looking = sqlx::query("SELECT * FROM holds").execute(own.pool()).await;
    assert!(looking.is_err(), "it takes longer than is usual");
    keep_all(&database, &[due_job("due"), paused_job("paused", "c")]).await;
    let broker = FakeBroker::new();
    // At this ceiling rows that are due need an answer too.
    let releaser = Running::start(own.pool(), &broker, ceiling(0));
    becomes_empty(&database).await;
    releaser.stop().await;
}
