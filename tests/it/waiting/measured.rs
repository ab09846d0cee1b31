//! A million waiting jobs. Run alone: `cargo test --release --test it waiting::measured -- --ignored
//! --nocapture`.

use std::time::Duration;

use jiff::Timestamp;
use lanekeeper::dispatch::ports::{Due, WaitReason, WaitingJob};
use lanekeeper::domain::Payload;
use lanekeeper::waiting::keep;
use tokio::time::{Instant, sleep};

use super::broker::FakeBroker;
use super::{Running, ceiling, job, of_account};
use crate::support::heavy;
use crate::support::postgres::TestDatabase;

const JOBS: usize = 1_000_000;
const ACCOUNTS: usize = 100;
/// All accounts together: 4,000 per second.
const PER_SECOND: u32 = 40;

/// As large as real jobs are.
fn deferred(number: usize, due: Timestamp) -> WaitingJob {
    let job = job(&format!("j-{number}"), WaitReason::NotBefore, Due::At(due));
    let mut job = of_account(job, &format!("account-{}", number % ACCOUNTS));
    job.payload = Payload::new(vec![b'x'; 300]);
    job
}

#[tokio::test]
#[ignore = "takes minutes: a measurement"]
async fn a_million_jobs_are_taken_in_wait_and_go_at_their_instant() {
    let _heavy = heavy().await;
    let database = TestDatabase::create().await;
    let broker = FakeBroker::new();
    let releaser = Running::start(database.pool(), &broker, ceiling(PER_SECOND));
    let began = Instant::now();
    // Each account's jobs are due at its ceiling's rate, from ten minutes on.
    let first = Timestamp::now() + Duration::from_secs(600);
    for batch in 0..JOBS.div_ceil(256) {
        let numbers = batch * 256..((batch + 1) * 256).min(JOBS);
        let jobs: Vec<_> = numbers
            .map(|number| {
                let turn = u32::try_from(number / ACCOUNTS).unwrap();
                deferred(number, first + Duration::from_secs(1) * turn / PER_SECOND)
            })
            .collect();
        keep(database.pool(), &jobs).await.unwrap();
    }
    let took = began.elapsed();
    let rate = JOBS as f64 / took.as_secs_f64();
    println!("taken in: {rate:.0} rows/s");
    assert!(broker.stored().is_empty(), "nothing circles while it waits");

    // Their instant comes: half a minute's worth is overdue at once, as after an outage.
    database
        .execute("UPDATE waiting SET due_at = now() + (due_at - (SELECT min(due_at) FROM waiting)) + interval '1 s'")
        .await;
    let came = Instant::now() + Duration::from_secs(1);
    sleep(Duration::from_secs(21)).await;
    let released = broker.stored().len();
    let expected = 20 * ACCOUNTS * usize::try_from(PER_SECOND).unwrap();
    println!("released in 20 s: {released} of {expected} that were due");
    let late = lateness(&broker, came);
    println!("latest: {late:?} after its instant");
    releaser.stop().await;
    assert!(released >= expected * 9 / 10 && late < Duration::from_secs(2));
}

/// By how much the latest job was late: job `n` of an account is due `n / PER_SECOND` after `came`.
fn lateness(broker: &FakeBroker, came: Instant) -> Duration {
    let mut late = Duration::ZERO;
    for call in broker.calls() {
        for job in &call.stored {
            let number: usize = job.id.as_str()[2..].parse().unwrap();
            let turn = u32::try_from(number / ACCOUNTS).unwrap();
            let due = came + Duration::from_secs(1) * turn / PER_SECOND;
            late = late.max(call.at.saturating_duration_since(due));
        }
    }
    late
}
