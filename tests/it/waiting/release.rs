//! What is due goes, once, in order, and at its ceiling's pace.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use lanekeeper::dispatch::ports::{Due, Route, WaitReason};
use lanekeeper::domain::{JobHeaders, Lane, Payload};
use tokio::time::{Instant, sleep};

use super::broker::{Call, FakeBroker};
use super::{Running, becomes_empty, ceiling, due_job, due_jobs, job, keep_all, left, of_account};
use crate::support::heavy;
use crate::support::postgres::TestDatabase;

#[tokio::test]
async fn a_job_goes_back_to_its_lane_byte_for_byte_when_its_instant_has_come() {
    let database = TestDatabase::create().await;
    let mut one = due_job("j-1");
    one.lane = Lane::Transactional;
    one.headers = JobHeaders {
        attempts: 2,
        sheds: 7,
        enqueued_ms: Some(1_767_322_845_678),
        admitted_ms: Some(1),
    };
    one.payload = Payload::new(vec![0, 159, 146, 150, b'{']);
    let later = Timestamp::now() + Duration::from_secs(3_600);
    let later = job("later", WaitReason::NotBefore, Due::At(later));
    keep_all(&database, &[later, one.clone()]).await;

    let broker = FakeBroker::new();
    let releaser = Running::start(database.pool(), &broker, ceiling(100));
    broker.has_stored(1).await;
    sleep(Duration::from_millis(600)).await;
    let telemetry = releaser.telemetry.clone();
    releaser.stop().await;

    let stored = broker.stored();
    assert_eq!(
        (stored.len(), left(&database).await),
        (1, vec!["later".to_owned()])
    );
    let back = &stored[0];
    assert_eq!(
        (&back.id, &back.account, back.lane),
        (&one.id, &one.account, one.lane)
    );
    assert_eq!((back.route, &back.payload), (Route::Queue, &one.payload));
    let headers = JobHeaders {
        admitted_ms: None,
        ..one.headers
    };
    assert_eq!(back.headers, headers, "its admission is long over");
    assert_eq!(
        telemetry
            .counts()
            .released
            .get(Lane::Transactional.index(), 0),
        1
    );
    let waiting = telemetry.counts().waiting.get(Lane::Marketing.index(), 0);
    assert_eq!(waiting, 1, "counted at the start");
}

#[tokio::test]
async fn what_was_due_first_goes_first() {
    let database = TestDatabase::create().await;
    let now = Timestamp::now();
    let jobs: Vec<_> = [30, 10, 20, 40]
        .map(|seconds| {
            let due = now - Duration::from_secs(seconds);
            job(&format!("{seconds}"), WaitReason::RetryAfter, Due::At(due))
        })
        .into();
    keep_all(&database, &jobs).await;
    let broker = FakeBroker::new();
    let releaser = Running::start(database.pool(), &broker, ceiling(2));
    broker.has_stored(4).await;
    releaser.stop().await;
    assert_eq!(broker.ids(), ["40", "30", "20", "10"]);
}

/// From any publish to any later one: no more than the ceiling lets through meanwhile, and in the
/// two seconds that may be ahead.
pub fn assert_pace(calls: &[Call], per_second: u32) {
    for (place, first) in calls.iter().enumerate() {
        let mut jobs = 0;
        for last in &calls[place..] {
            jobs += last.stored.len() as u128;
            let millis = last.at.saturating_duration_since(first.at).as_millis() + 2_000;
            let most = millis * u128::from(per_second) / 1_000 + 1;
            assert!(jobs <= most, "{jobs} jobs, {most} at most");
        }
    }
}

async fn together(releasers: usize) {
    let _heavy = heavy().await;
    let database = TestDatabase::create().await;
    keep_all(&database, &due_jobs(600)).await;
    let broker = FakeBroker::new();
    let began = Instant::now();
    let running: Vec<_> = (0..releasers)
        .map(|_| Running::start(&database.database().pool().clone(), &broker, ceiling(150)))
        .collect();
    becomes_empty(&database).await;
    let took = began.elapsed();
    for releaser in running {
        releaser.stop().await;
    }
    let ids = broker.ids();
    assert_eq!(ids.len(), 600);
    assert_eq!(
        ids.iter().collect::<HashSet<_>>().len(),
        600,
        "each of them once"
    );
    assert_pace(&broker.calls(), 150);
    // 300 at once, and 300 at 150 per second.
    assert!(took < Duration::from_secs(4), "it took {took:?}");
}

#[tokio::test]
async fn two_releasers_keep_one_pace_and_publish_each_row_once() {
    together(2).await;
}

#[tokio::test]
async fn eight_releasers_keep_one_pace_and_publish_each_row_once() {
    together(8).await;
}

#[tokio::test]
async fn each_account_and_lane_has_its_own_pace() {
    let database = TestDatabase::create().await;
    let mut jobs = Vec::new();
    for account in ["slow", "quick"] {
        for lane in Lane::ALL {
            for mut job in due_jobs(30) {
                job.lane = lane;
                jobs.push(of_account(job, account));
            }
        }
    }
    keep_all(&database, &jobs).await;
    let broker = FakeBroker::new();
    let ceiling = |account: &lanekeeper::domain::AccountId, lane| match (account.as_str(), lane) {
        ("quick", _) => 1_000,
        (_, Lane::Transactional) => 5,
        (_, Lane::Marketing) => 1,
    };
    let releaser = Running::start(database.pool(), &broker, Arc::new(ceiling));
    // 60 of the quick account, and two seconds of 5 and of 1 of the slow one.
    broker.has_stored(72).await;
    releaser.stop().await;
    let stored = broker.stored();
    let of = |account: &str, lane| {
        let one = |job: &&lanekeeper::dispatch::ports::Requeue| {
            job.account.as_str() == account && job.lane == lane
        };
        stored.iter().filter(one).count()
    };
    assert_eq!(
        (
            of("quick", Lane::Transactional),
            of("quick", Lane::Marketing)
        ),
        (30, 30)
    );
    assert!((10..=15).contains(&of("slow", Lane::Transactional)));
    assert!((2..=3).contains(&of("slow", Lane::Marketing)));
}

#[tokio::test]
async fn a_ceiling_of_nothing_releases_nothing_but_what_is_cancelled() {
    let database = TestDatabase::create().await;
    let mut jobs = due_jobs(10);
    jobs.extend(due_jobs(10).into_iter().map(|job| of_account(job, "gone")));
    keep_all(&database, &jobs).await;
    database
        .execute("INSERT INTO holds VALUES ('gone', 'account', 'gone', 'cancelled')")
        .await;
    let broker = FakeBroker::new();
    let releaser = Running::start(database.pool(), &broker, ceiling(0));
    broker.has_stored(3).await;
    releaser.stop().await;
    let stored = broker.stored();
    assert!(stored.iter().all(|job| job.account.as_str() == "gone"));
    assert!(
        (3..=4).contains(&stored.len()),
        "two at once, then one per second"
    );
}

#[tokio::test]
async fn large_jobs_go_a_few_at_a_time() {
    let database = TestDatabase::create().await;
    let mut jobs = due_jobs(40);
    for job in &mut jobs {
        job.payload = Payload::new(vec![b'x'; 200 << 10]);
    }
    keep_all(&database, &jobs).await;
    let broker = FakeBroker::new();
    let releaser = Running::start(database.pool(), &broker, ceiling(1_000));
    becomes_empty(&database).await;
    releaser.stop().await;
    let sizes: Vec<_> = broker
        .calls()
        .iter()
        .map(|call| call.stored.len())
        .collect();
    assert_eq!(
        sizes,
        [11, 11, 11, 7],
        "2 MiB and the job that exceeds them"
    );
}

/// A million jobs of one account must not be in the way of another account's.
#[tokio::test]
async fn a_long_line_holds_up_no_other() {
    let database = TestDatabase::create().await;
    let mut jobs = due_jobs(5_000);
    jobs.push(of_account(due_job("other"), "zzz"));
    keep_all(&database, &jobs).await;
    let broker = FakeBroker::new();
    let releaser = Running::start(database.pool(), &broker, ceiling(1_000_000));
    becomes_empty(&database).await;
    releaser.stop().await;
    let place = broker.ids().iter().position(|id| id == "other").unwrap();
    assert!(place <= 1_000, "its turn came after {place} jobs");
}
