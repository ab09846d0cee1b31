//! Jobs that wait in the table, and what they wait for.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::support::eventually;
use crate::support::jobs::Offer;
use crate::support::records::{Records, Row};
use crate::support::scene::{ACCOUNT, Scene};
use crate::support::stub::Reply;
use crate::support::worker::Worker;

const SECOND: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(20);

async fn waits(records: &Records, account: &str, id: &str) -> Row {
    let what = format!("{id} waits");
    let there = async || !records.waits(account, id).await.is_empty();
    eventually(&what, PATIENCE, there).await;
    let mut rows = records.waits(account, id).await;
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows.remove(0)
}

/// A window in `Etc/UTC` that begins so many minutes from now, and the instant at which it does.
fn window_in(minutes: i64) -> (String, Timestamp) {
    let opens = Timestamp::now().as_second().div_euclid(60) + minutes;
    let at = |minutes: i64| format!("{:02}:{:02}", minutes / 60 % 24, minutes % 60);
    let opening = Timestamp::from_second(opens * 60).unwrap();
    (format!("{}-{}", at(opens), at(opens + 60)), opening)
}

/// Outside its window a job waits until that opens, where the account says so, and ends as refused
/// where it does not: in both cases with the same instant.
#[tokio::test]
async fn quiet_hours_defer_or_refuse_until_the_window_opens() {
    let (scene, database) = Scene::with_database("quiet").await;
    let records = Records::of(database.pool());
    let (window, opening) = window_in(180);
    for action in ["defer", "refuse"] {
        records
            .commit(&format!(
                r#"INSERT INTO accounts (account_id, quiet_hours, quiet_action, time_zone, windows)
                VALUES ('{action}', true, '{action}', 'Etc/UTC', '{{"sms": "{window}", "push": "{window}"}}')"#
            ))
            .await;
    }
    let worker = Worker::start(&scene.config).await;
    let events = scene.events().await;
    let mut offers = Vec::new();
    for action in ["defer", "refuse"] {
        // The recipient's own zone counts; without one, and without a number, the account's.
        let own = |offer: Offer| offer.with("recipient_timezone", "Etc/UTC");
        offers.push(own(Offer::otp(action, "code")));
        offers.push(own(Offer::marketing(action, "bulk")));
        let push = Offer::marketing(action, "push").with("channel", "push");
        offers.push(push.with("to", "device-7"));
        // Elsewhere it is another hour: eleven hours on, the window is not open either.
        let elsewhere = Offer::otp(action, "elsewhere");
        offers.push(elsewhere.with("recipient_timezone", "Pacific/Noumea"));
        offers.push(
            Offer::otp(action, "email")
                .with("channel", "email")
                .with("to", "a@example.org"),
        );
    }
    scene.publisher().await.publish_all(&offers).await;
    let due = opening.as_millisecond();
    for id in ["code", "bulk", "push"] {
        let row = waits(&records, "defer", id).await;
        assert_eq!((&*row.reason, row.due), ("quiet_hours", Some(due)), "{id}");
    }
    records.await_entries(6, PATIENCE).await;
    for id in ["code", "bulk", "push"] {
        let entry = records.entries("refuse", id).await.remove(0);
        assert_eq!(entry.reason.as_deref(), Some("quiet_hours"));
        assert_eq!(entry.next_allowed, Some(due), "{id}");
        let told = async || events.of("refuse", id).len() == 1;
        eventually("it is told", PATIENCE, told).await;
        let event = events.of("refuse", id).remove(0);
        let next: Timestamp = event["next_allowed_at"].as_str().unwrap().parse().unwrap();
        assert_eq!(next, opening);
    }
    let eleven = SignedDuration::from_hours(11).as_millis();
    let elsewhere = waits(&records, "defer", "elsewhere").await.due.unwrap();
    let day = SignedDuration::from_hours(24).as_millis();
    let apart = i128::from(due) - eleven - i128::from(elsewhere);
    assert_eq!(apart.rem_euclid(day), 0, "the same hour of their own clock");
    assert!(elsewhere > Timestamp::now().as_millisecond());
    let arrivals = scene.stub.arrivals();
    assert!(arrivals.iter().all(|one| one.id == "email"), "{arrivals:?}");
    worker.stop().await;
    scene.end().await;
}

/// A job that was deferred goes when its window opens.
#[tokio::test]
async fn a_deferred_job_goes_when_it_is_due_and_not_before() {
    let (scene, database) = Scene::with_database("due").await;
    let records = Records::of(database.pool());
    let worker = Worker::start(&scene.config).await;
    let (now, instant) = (Timestamp::now(), Instant::now());
    let due = now + Duration::from_secs(3);
    let offers: Vec<_> = [
        Offer::otp(ACCOUNT, "code"),
        Offer::marketing(ACCOUNT, "bulk"),
    ]
    .into_iter()
    .map(|offer| offer.with("not_before", due.to_string()))
    .collect();
    scene.publisher().await.publish_all(&offers).await;
    for id in ["code", "bulk"] {
        let row = waits(&records, ACCOUNT, id).await;
        assert_eq!((row.attempts, row.sheds), (0, 0));
        assert_eq!(row.due, Some(due.as_millisecond()));
    }
    scene.stub.wait_for(2, PATIENCE).await;
    for arrival in scene.stub.arrivals() {
        let after = arrival.at - instant;
        // The wall clock's instants and the steady clock's were read one after the other.
        assert!(after + Duration::from_millis(20) > 3 * SECOND, "{after:?}");
        assert!(after < 5 * SECOND, "{after:?}");
    }
    records.await_entries(2, PATIENCE).await;
    assert_eq!(records.waiting().await, 0);
    worker.stop().await;
    scene.end().await;
}

/// F5-20: what is worthless by the time that it may go ends as expired.
#[tokio::test]
async fn a_job_that_is_worthless_when_its_wait_is_over_ends_as_expired() {
    let (scene, database) = Scene::with_database("late").await;
    let records = Records::of(database.pool());
    records.hold("held", "account", "held", "paused").await;
    let worker = Worker::start(&scene.config).await;
    let publisher = scene.publisher().await;
    let at = |millis: u64| (Timestamp::now() + Duration::from_millis(millis)).to_string();
    let deferred = Offer::otp(ACCOUNT, "deferred").with("not_before", at(2_000));
    let held = Offer::otp("held", "held");
    let offers = [deferred, held].map(|offer| offer.with("expires_at", at(1_900)));
    publisher.publish_all(&offers).await;
    waits(&records, ACCOUNT, "deferred").await;
    waits(&records, "held", "held").await;
    tokio::time::sleep(2 * SECOND).await;
    records.commit("DELETE FROM holds").await;
    records.await_entries(2, PATIENCE).await;
    assert_eq!(records.ended("expired", "").await, 2);
    assert_eq!(scene.stub.count(), 0);
    worker.stop().await;
    scene.end().await;
}

/// A carrier that wants to be left alone for a minute is: the job waits in the table, and not in the
/// parking queue; so do the account's next ones, and other accounts' jobs go.
#[tokio::test]
async fn a_long_retry_after_is_waited_for_in_the_table() {
    let (scene, database) = Scene::with_database("retryafter").await;
    scene.stub.set_script(|id, _| match id {
        "throttled" => Reply::Throttle(60),
        _ => Reply::Accept,
    });
    let records = Records::of(database.pool());
    let worker = Worker::start(&scene.config).await;
    let publisher = scene.publisher().await;
    let before = Timestamp::now().as_millisecond();
    publisher
        .publish_all(&[Offer::marketing(ACCOUNT, "throttled")])
        .await;
    let row = waits(&records, ACCOUNT, "throttled").await;
    let wait = row.due.unwrap() - before;
    assert_eq!((&*row.reason, row.attempts), ("retry_after", 1));
    assert!((60_000..75_000).contains(&wait), "{wait} ms");

    let offers = [
        Offer::marketing(ACCOUNT, "next"),
        Offer::marketing("other", "other"),
        // Passwords find out for themselves.
        Offer::otp(ACCOUNT, "code"),
    ];
    publisher.publish_all(&offers).await;
    let row = waits(&records, ACCOUNT, "next").await;
    assert_eq!((&*row.reason, row.attempts), ("retry_after", 0));
    records.await_entries(2, PATIENCE).await;
    let mut ids: Vec<_> = scene
        .stub
        .arrivals()
        .into_iter()
        .map(|one| one.id)
        .collect();
    ids.sort();
    assert_eq!(ids, ["code", "other", "throttled"]);
    assert_eq!(scene.queues().await.all_ready().await, 0);
    assert_eq!(worker.count("lanekeeper_parks_total", &[]).await, 0);
    worker.stop().await;
    scene.end().await;
}
