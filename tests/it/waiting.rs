//! Jobs that wait in PostgreSQL, and their release.

mod broker;
mod keep;
mod measured;
mod paused;
mod publishing;
mod release;
mod trouble;

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use jiff::Timestamp;
use lanekeeper::dispatch::ports::{Due, WaitReason, WaitingJob};
use lanekeeper::domain::{AccountId, JobHeaders, JobId, Lane, Payload};
use lanekeeper::telemetry::Telemetry;
use lanekeeper::waiting::{CeilingOf, Releaser, keep};
use sqlx::PgPool;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::support::eventually;
use crate::support::postgres::TestDatabase;
use broker::FakeBroker;

/// How long anything that must happen may take.
const LIMIT: Duration = Duration::from_secs(20);

/// A waiting job of account `acme` in the marketing lane.
fn job(id: &str, reason: WaitReason, due: Due) -> WaitingJob {
    WaitingJob {
        id: JobId::parse(id).unwrap(),
        account: AccountId::parse("acme").unwrap(),
        lane: Lane::Marketing,
        reason,
        due,
        campaign: None,
        journey: None,
        batch: None,
        headers: JobHeaders::default(),
        payload: Payload::new(format!(r#"{{"id":"{id}"}}"#)),
    }
}

/// One that was due a while ago.
fn due_job(id: &str) -> WaitingJob {
    let due = Timestamp::now() - Duration::from_secs(60);
    job(id, WaitReason::NotBefore, Due::At(due))
}

/// So many of them.
fn due_jobs(count: usize) -> Vec<WaitingJob> {
    let jobs = 0..count;
    jobs.map(|number| due_job(&format!("j-{number:05}")))
        .collect()
}

/// One of another account.
fn of_account(mut job: WaitingJob, account: &str) -> WaitingJob {
    job.account = AccountId::parse(account).unwrap();
    job
}

/// One that waits for a decision about its campaign.
fn paused_job(id: &str, campaign: &str) -> WaitingJob {
    let mut job = job(id, WaitReason::Paused, Due::Resumed);
    job.campaign = Some(campaign.into());
    job
}

/// How long a broker may take to confirm.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(5);

/// The same ceiling for everybody.
fn ceiling(per_second: u32) -> CeilingOf {
    Arc::new(move |_, _| per_second)
}

/// A releaser that runs.
struct Running {
    stop: CancellationToken,
    task: JoinHandle<()>,
    telemetry: Telemetry,
}

impl Running {
    fn start(pool: &PgPool, broker: &Arc<FakeBroker>, ceiling: CeilingOf) -> Self {
        Self::with_patience(pool, broker, ceiling, CONFIRM_TIMEOUT)
    }

    /// One whose broker may take so long to confirm.
    fn with_patience(
        pool: &PgPool,
        broker: &Arc<FakeBroker>,
        ceiling: CeilingOf,
        confirm_timeout: Duration,
    ) -> Self {
        let telemetry = Telemetry::unexported();
        let releaser = Releaser::new(
            pool.clone(),
            Arc::clone(broker),
            ceiling,
            confirm_timeout,
            telemetry.clone(),
            Rng::new(),
        );
        let stop = CancellationToken::new();
        Self {
            task: tokio::spawn(releaser.run(stop.clone())),
            stop,
            telemetry,
        }
    }

    /// Stops it, which takes less than a second.
    async fn stop(self) {
        self.stop.cancel();
        let stopped = tokio::time::timeout(Duration::from_secs(1), self.task).await;
        stopped.expect("it stops within a second").unwrap();
    }
}

/// The ids of the rows that still wait, in the order in which they came.
async fn left(database: &TestDatabase) -> Vec<String> {
    let ids = sqlx::query_scalar("SELECT id FROM waiting ORDER BY row_number");
    ids.fetch_all(database.pool()).await.unwrap()
}

async fn becomes_empty(database: &TestDatabase) {
    eventually("nothing waits any more", LIMIT, async || {
        left(database).await.is_empty()
    })
    .await;
}

async fn keep_all(database: &TestDatabase, jobs: &[WaitingJob]) {
    for jobs in jobs.chunks(256) {
        keep(database.pool(), jobs).await.unwrap();
    }
}
