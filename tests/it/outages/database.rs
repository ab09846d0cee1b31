//! PostgreSQL goes away under load: nothing is sent unchecked, nothing is lost, and passwords flow
//! again at once when it is back.

use std::time::Duration;

use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, Executor as _};
use tokio::time::{Instant, sleep, sleep_until};

use super::{SECOND, marketing, spawn_passwords};
use crate::support::jobs::Offer;
use crate::support::postgres::PrivatePostgres;
use crate::support::records::Records;
use crate::support::scene::Scene;
use crate::support::worker::{Cluster, Worker};
use crate::support::{amqp_url, eventually, heavy, redis_url};

/// What was looked up before may still go out; a question may take a second.
const UNDER_WAY: Duration = Duration::from_millis(1_200);
const BACK_WITHIN: Duration = Duration::from_secs(2);
const PREFETCH: u64 = 100;
const WORKERS: u64 = 2;

/// A way in which opt-outs cannot be looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Stopped,
    Frozen,
    Locked,
}

const FAULTS: [Fault; 3] = [Fault::Stopped, Fault::Frozen, Fault::Locked];

impl Fault {
    /// The real length of a stop is for those who have the time: in seconds.
    fn lasts(self) -> Duration {
        let stopped = std::env::var("LANEKEEPER_TEST_DATABASE_OUTAGE_S");
        let stopped = stopped.ok().and_then(|seconds| seconds.parse().ok());
        match self {
            Self::Stopped => SECOND * stopped.unwrap_or(15),
            Self::Frozen | Self::Locked => 5 * SECOND,
        }
    }

    /// Begins it. A lock is held by the connection that is given back.
    async fn begin(self, server: &mut PrivatePostgres) -> Option<PgConnection> {
        match self {
            Self::Stopped => server.stop().await,
            Self::Frozen => server.freeze(),
            Self::Locked => {
                let mut locking = PgConnection::connect(&server.url()).await.unwrap();
                let lock = "BEGIN; LOCK TABLE suppressions IN ACCESS EXCLUSIVE MODE";
                locking.execute(lock).await.unwrap();
                return Some(locking);
            }
        }
        None
    }

    async fn end(self, server: &mut PrivatePostgres, locking: Option<PgConnection>) {
        match self {
            Self::Stopped => server.restart().await,
            Self::Frozen => server.thaw(),
            Self::Locked => {
                let mut locking = locking.expect("it began with a lock");
                locking.execute("ROLLBACK").await.unwrap();
            }
        }
    }
}

/// F5-32: the opt-outs cannot be looked up for a while, in three ways.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_opt_outs_cannot_be_looked_up_nothing_is_sent_and_nothing_is_lost() {
    const BULK: usize = 2_500;
    let _alone = heavy().await;
    let mut server = PrivatePostgres::start_migrated().await;
    let scene = Scene::on("nodatabase", amqp_url(), redis_url()).await;
    let scene = scene
        .recorded_at(&server.url())
        .set("AMQP__PREFETCH", PREFETCH)
        .set("LANES__BUDGET_PER_SECOND", 200);
    let cluster = Cluster::start(2, &scene.config).await;
    let bulk = Offer::many(BULK, "bulk", |id| marketing(id).queued_now());
    scene.publisher().await.publish_all(&bulk).await;
    let seconds = FAULTS.map(|fault| fault.lasts().as_secs() + 4);
    let passwords = usize::try_from(20 * seconds.iter().sum::<u64>()).unwrap();
    let load = spawn_passwords(scene.publisher().await, 20, passwords);
    scene.stub.wait_for(200, 10 * SECOND).await;

    for fault in FAULTS {
        outlive(fault, &mut server, &scene, &cluster).await;
        sleep(SECOND).await;
    }
    let jobs = BULK + load.await.unwrap().len();
    scene.stub.wait_for(jobs, 90 * SECOND).await;
    let records = Records::of(&server.pool());
    records.await_entries(jobs, 20 * SECOND).await;
    scene.assert_drained().await;
    let duplicates = scene.stub.duplicates();
    let deliveries = cluster.count("lanekeeper_deliveries_total", &[]).await;
    let sheds = cluster.count("lanekeeper_sheds_total", &[]).await;
    println!(
        "figure: database_faults jobs={jobs} at_carrier={} duplicates={} deliveries={deliveries} sheds={sheds} ledger_lost={}",
        scene.stub.count(),
        duplicates.len(),
        cluster.count("lanekeeper_ledger_lost_total", &[]).await,
    );
    assert!(duplicates.is_empty(), "{duplicates:?}");
    // Each fault returns what was prefetched, once.
    let returned = FAULTS.len() as u64 * WORKERS * 2 * PREFETCH;
    let most = jobs as u64 + sheds + returned;
    assert!(deliveries <= most, "{deliveries} deliveries, not {most}");
    cluster.stop().await;
    scene.end().await;
}

async fn outlive(fault: Fault, server: &mut PrivatePostgres, scene: &Scene, cluster: &Cluster) {
    let begun = Instant::now();
    let locking = fault.begin(server).await;
    sleep_until(begun + 2 * SECOND + SECOND / 2).await;
    for worker in &cluster.workers {
        assert_says_why(worker, fault).await;
    }
    let deliveries = cluster.count("lanekeeper_deliveries_total", &[]).await;
    sleep_until(begun + fault.lasts()).await;
    let later = cluster.count("lanekeeper_deliveries_total", &[]).await;
    assert_eq!(later, deliveries, "taken during {fault:?}");
    let until = Instant::now();
    fault.end(server, locking).await;
    let back = Instant::now();

    let unchecked = scene.stub.arrivals().into_iter();
    let unchecked = unchecked.filter(|one| one.at > begun + UNDER_WAY && one.at < until);
    let unchecked: Vec<_> = unchecked.collect();
    assert!(unchecked.is_empty(), "during {fault:?}: {unchecked:?}");
    let flows = async || {
        let arrivals = scene.stub.arrivals();
        let is_password = |lane: &str| lane == "transactional";
        arrivals
            .iter()
            .any(|one| one.at > until && is_password(&one.lane))
    };
    eventually("passwords flow", 2 * BACK_WITHIN, flows).await;
    let took = first_after(scene, until, "transactional").saturating_duration_since(back);
    println!(
        "figure: database_{fault:?} seconds={} last_arrival_ms={} password_after_return_ms={}",
        fault.lasts().as_secs(),
        last_before(scene, begun, until).as_millis(),
        took.as_millis(),
    );
    assert!(took < BACK_WITHIN, "{took:?} after {fault:?}");
    for worker in &cluster.workers {
        let ready = async || worker.is_ready().await;
        eventually("ready again", 2 * BACK_WITHIN, ready).await;
        assert_eq!(worker.count("lanekeeper_database_away", &[]).await, 0);
    }
}

async fn assert_says_why(worker: &Worker, fault: Fault) {
    let told = worker.ops("/readyz").await;
    assert!(!worker.is_ready().await, "ready during {fault:?}: {told}");
    let why = "opt-outs cannot be looked up";
    assert!(told.contains(why), "{fault:?}: {told}");
    assert_eq!(worker.count("lanekeeper_database_away", &[]).await, 1);
}

/// How long after the beginning the last job arrived that was under way then.
fn last_before(scene: &Scene, begun: Instant, until: Instant) -> Duration {
    let arrivals = scene.stub.arrivals().into_iter();
    let meanwhile = arrivals.filter(|one| one.at > begun && one.at < until);
    let after = meanwhile.map(|one| one.at - begun).max();
    after.unwrap_or_default()
}

fn first_after(scene: &Scene, instant: Instant, lane: &str) -> Instant {
    let arrivals = scene.stub.arrivals();
    let after = arrivals
        .iter()
        .filter(|one| one.lane == lane && one.at > instant);
    after.map(|one| one.at).min().expect("one has arrived")
}

/// F5-31: a pause holds although the database is then gone, and when it is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_paused_stays_so_while_the_database_is_away_and_after() {
    const BULK: usize = 2_000;
    let _alone = heavy().await;
    let mut server = PrivatePostgres::start_migrated().await;
    let scene = Scene::on("pausedaway", amqp_url(), redis_url()).await;
    let scene = scene.recorded_at(&server.url());
    let records = Records::of(&server.pool());
    records.account("acme", 400).await;
    let cluster = Cluster::start(2, &scene.config).await;
    let bulk = Offer::many(BULK, "bulk", |id| marketing(id).queued_now());
    scene.publisher().await.publish_all(&bulk).await;
    scene.stub.wait_for(300, 10 * SECOND).await;
    let paused = records.hold("acme", "account", "acme", "paused").await;
    server.stop().await;
    sleep(3 * SECOND).await;
    server.restart().await;
    let records = Records::of(&server.pool());
    let all_wait = async || records.waiting().await + scene.stub.distinct() == BULK;
    eventually("all others wait", 20 * SECOND, all_wait).await;
    let late = scene.stub.arrivals().into_iter();
    let late: Vec<_> = late.filter(|one| one.at > paused + SECOND).collect();
    assert!(late.is_empty(), "after the pause: {late:?}");

    let resumed = records.commit("DELETE FROM holds").await;
    let goes = async || scene.stub.arrivals().iter().any(|one| one.at > resumed);
    eventually("it goes on", 2 * SECOND, goes).await;
    scene.stub.wait_for(BULK, 20 * SECOND).await;
    records.await_entries(BULK, 10 * SECOND).await;
    assert!(scene.stub.duplicates().is_empty());
    let before = scene
        .stub
        .arrivals()
        .iter()
        .filter(|one| one.at < resumed)
        .count();
    println!(
        "figure: paused_away jobs={BULK} before={before} after_pause={}",
        late.len()
    );
    cluster.stop().await;
    scene.end().await;
}
