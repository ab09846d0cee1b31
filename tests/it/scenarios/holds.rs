//! Pausing, resuming and cancelling with ten thousand jobs queued and prefetched.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::support::events::Events;
use crate::support::jobs::Offer;
use crate::support::postgres::TestDatabase;
use crate::support::records::Records;
use crate::support::scene::Scene;
use crate::support::watch::CounterWatch;
use crate::support::worker::{Cluster, FALLBACKS};
use crate::support::{eventually, heavy};

const SECOND: Duration = Duration::from_secs(1);
const JOBS: usize = 2_500;
const BUDGET: i32 = 200;

/// What is paused, each in an account of its own. The first two are resumed, the others cancelled.
const KINDS: [&str; 4] = ["account", "campaign", "journey", "batch"];
const RESUMED: usize = 2;
const ALL: usize = KINDS.len() * JOBS;

fn account(kind: &str) -> String {
    format!("by-{kind}")
}

/// The thing that is paused: for an account, itself.
fn target(kind: &str) -> String {
    if kind == "account" {
        account(kind)
    } else {
        "spring".to_owned()
    }
}

/// The first half of them passwords.
fn jobs(kind: &str) -> Vec<Offer> {
    let job = |number: usize| {
        let id = format!("{kind}-{number}");
        let offer = if number < JOBS / 2 {
            Offer::otp(&account(kind), id)
        } else {
            Offer::marketing(&account(kind), id)
        };
        offer.queued_now().with(&format!("{kind}_id"), target(kind))
    };
    (0..JOBS).map(job).collect()
}

/// Two workers, and ten thousand jobs on their way.
struct World {
    scene: Scene,
    records: Records,
    cluster: Cluster,
    events: Events,
    _database: TestDatabase,
}

/// How a pause went.
struct Pause {
    /// How long after it the last job arrived.
    last: Duration,
    /// How long it took until all others were in the table.
    kept_within: Duration,
}

/// How its end went.
struct Resumption {
    /// When each of the resumed ones had its first arrival.
    starts: Vec<Duration>,
    /// How long it took until all had ended.
    over: Duration,
    /// The highest count of a window.
    highest: u64,
}

/// The time from an instant to an account's first arrival after it.
fn first_after(scene: &Scene, kind: &str, instant: Instant) -> Option<Duration> {
    let (account, arrivals) = (account(kind), scene.stub.arrivals());
    let own = arrivals.iter().filter(|one| one.account == account);
    own.filter(|one| one.at > instant)
        .map(|one| one.at - instant)
        .min()
}

impl World {
    async fn new() -> Self {
        let (scene, database) = Scene::with_database("holds").await;
        // Few slots and a slow carrier: at any moment some jobs are on their way, not only when
        // windows open.
        let scene = scene.set("CARRIERS__DEFAULT__MAX_IN_FLIGHT", 10);
        scene.stub.set_latency(Duration::from_millis(25));
        let records = Records::of(database.pool());
        for kind in KINDS {
            records.account(&account(kind), BUDGET).await;
        }
        let cluster = Cluster::start(2, &scene.config).await;
        let world = Self {
            events: scene.events().await,
            scene,
            records,
            cluster,
            _database: database,
        };
        let publisher = world.scene.publisher().await;
        for kind in KINDS {
            publisher.publish_all(&jobs(kind)).await;
        }
        world
    }

    /// Pauses all four at once, and waits until nothing moves any more.
    async fn pause(&self) -> Pause {
        let row = |kind| {
            format!(
                "('{}', '{kind}', '{}', 'paused')",
                account(kind),
                target(kind)
            )
        };
        let rows = KINDS.map(row).join(", ");
        let insert = format!("INSERT INTO holds (account_id, kind, target, state) VALUES {rows}");
        let paused = self.records.commit(&insert).await;
        let kept = async || self.records.waiting().await + self.scene.stub.distinct() == ALL;
        eventually("all that has not gone waits", 40 * SECOND, kept).await;
        let kept_within = paused.elapsed();
        self.assert_idle().await;
        assert_eq!(
            self.records.waiting_for("paused").await,
            self.records.waiting().await
        );
        let arrivals = self.scene.stub.arrivals().into_iter();
        let after = arrivals.map(|one| one.at.saturating_duration_since(paused));
        Pause {
            last: after.max().unwrap_or_default(),
            kept_within,
        }
    }

    /// Neither broker nor workers have anything to do.
    async fn assert_idle(&self) {
        let queues = self.scene.queues().await;
        let empty = async || queues.all_ready().await == 0;
        eventually("the queues are empty", 5 * SECOND, empty).await;
        let deliveries = self.deliveries().await;
        sleep(2 * SECOND).await;
        assert_eq!(self.deliveries().await, deliveries);
        assert_eq!(queues.all_ready().await, 0);
    }

    async fn deliveries(&self) -> u64 {
        self.cluster.count("lanekeeper_deliveries_total", &[]).await
    }

    /// Resumes some, cancels the others, and waits until all have ended.
    async fn resume(&self) -> Resumption {
        let (resumed, cancelled) = KINDS.split_at(RESUMED);
        let mut watches = Vec::new();
        for kind in resumed {
            watches.push(self.scene.watch_of(&account(kind)).await);
        }
        let change = "DELETE FROM holds WHERE kind IN ('account', 'campaign');
                      UPDATE holds SET state = 'cancelled'";
        let changed = self.records.commit(change).await;
        self.records.await_entries(ALL, 60 * SECOND).await;
        let first = |kind: &&str| first_after(&self.scene, kind, changed);
        assert!(cancelled.iter().all(|kind| first(kind).is_none()));
        Resumption {
            starts: resumed.iter().filter_map(first).collect(),
            over: changed.elapsed(),
            highest: highest(watches).await,
        }
    }
}

/// F5-31: what is queued and prefetched stops within a second of the pause, in both lanes, waits
/// without the broker, and starts again within two of its end, under the ceiling.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_stops_what_is_on_its_way_and_its_end_lets_it_go() {
    let _alone = heavy().await;
    let world = World::new().await;
    let pause = world.pause().await;
    let before = world.scene.stub.count();
    let resumption = world.resume().await;
    let cancelled = world.records.ended("cancelled", "").await;
    let Resumption {
        starts,
        over,
        highest,
    } = resumption;
    println!(
        "figure: holds jobs={ALL} before={before} last_after_pause_ms={} all_kept_s={:.1} started={starts:.0?} highest={highest} cancelled={cancelled} over_s={:.1} fallbacks={}",
        pause.last.as_millis(),
        pause.kept_within.as_secs_f64(),
        over.as_secs_f64(),
        world.cluster.count(FALLBACKS, &[]).await,
    );
    assert!(pause.last < SECOND, "the last one {:?} after", pause.last);
    assert_eq!(starts.len(), RESUMED);
    assert!(starts.iter().all(|start| *start < 2 * SECOND), "{starts:?}");
    let budget = u64::from(BUDGET.unsigned_abs());
    assert!(highest <= budget, "a window reached {highest}");
    assert_eq!(cancelled + world.scene.stub.distinct(), ALL);
    assert!(world.scene.stub.duplicates().is_empty());
    let told = world.events.ends();
    assert_eq!(told[&("cancelled".to_owned(), String::new())], cancelled);
    assert_eq!(world.records.waiting().await, 0);
    world.scene.assert_drained().await;
    world.cluster.stop().await;
    world.scene.end().await;
}

async fn highest(watches: Vec<CounterWatch>) -> u64 {
    let mut highest = 0;
    for watch in watches {
        let windows = watch.finish().await;
        highest = highest.max(windows.iter().map(|window| window.count).max().unwrap_or(0));
    }
    highest
}

/// A deferred job must have its end while the cancellation stands: by its instant somebody may have
/// lifted it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deferred_job_that_is_cancelled_ends_before_it_is_due() {
    let (scene, database) = Scene::with_database("cancelled").await;
    let records = Records::of(database.pool());
    let cluster = Cluster::start(1, &scene.config).await;
    let at = (jiff::Timestamp::now() + 3_600 * SECOND).to_string();
    let later = |id, batch| {
        let offer = Offer::marketing("acme", id).with("not_before", &*at);
        offer.with("batch_id", batch)
    };
    let jobs = [later("wrong", "wrong-prices"), later("right", "right-ones")];
    scene.publisher().await.publish_all(&jobs).await;
    let both_wait = async || records.waiting().await == 2;
    eventually("both wait", 10 * SECOND, both_wait).await;

    let cancel = "INSERT INTO holds VALUES ('acme', 'batch', 'wrong-prices', 'cancelled')";
    records.commit(cancel).await;
    records.await_entries(1, 10 * SECOND).await;
    records.commit("DELETE FROM holds").await;
    assert_eq!(records.ended("cancelled", "").await, 1);
    assert_eq!(records.waits("acme", "right").await.len(), 1);
    assert_eq!(records.waiting().await, 1);
    scene.assert_drained().await;
    assert_eq!(scene.stub.count(), 0);
    cluster.stop().await;
    scene.end().await;
}
