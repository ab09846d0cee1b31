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

/// From the beginning to the first job's instant: taking all of them in takes less.
const WAIT: Duration = Duration::from_secs(240);

/// As large as real jobs are. Each account's are due at its ceiling's rate from `first` on.
fn deferred(number: usize, first: Timestamp) -> WaitingJob {
    let turn = u32::try_from(number / ACCOUNTS).unwrap();
    let due = first + Duration::from_secs(1) * turn / PER_SECOND;
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
    let first = Timestamp::now() + WAIT;
    for batch in 0..JOBS.div_ceil(256) {
        let numbers = batch * 256..((batch + 1) * 256).min(JOBS);
        let jobs: Vec<_> = numbers.map(|number| deferred(number, first)).collect();
        keep(database.pool(), &jobs).await.unwrap();
    }
    let took = began.elapsed();
    println!(
        "taken in: {} rows/s",
        JOBS as u128 * 1_000 / took.as_millis()
    );
    assert!(took < WAIT, "taking them in took {took:?}");

    sleep(WAIT.saturating_sub(took)).await;
    assert!(broker.stored().is_empty(), "nothing circles while it waits");
    sleep(Duration::from_secs(20)).await;
    let gone = broker.stored().len();
    let expected = 20 * ACCOUNTS * usize::try_from(PER_SECOND).unwrap();
    let late = lateness(&broker, began + WAIT);
    println!("released in 20 s: {gone} of {expected}; the latest {late:?} after its instant");
    releaser.stop().await;
    assert!(late < Duration::from_secs(2));
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
