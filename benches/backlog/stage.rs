//! What each part runs on: a broker and a Redis of its own, a database, a stub carrier.

use std::time::Duration;

use tokio::time::Instant;

use crate::support::hot_queues::HotQueues;
use crate::support::jobs::Offer;
use crate::support::postgres::TestDatabase;
use crate::support::rabbit::Rabbit;
use crate::support::redis::RedisServer;
use crate::support::scene::Scene;
use crate::support::worker::{Cluster, FALLBACKS, WorkerConfig};

/// The account with the backlog, whose budget is 100 a second with a fifth as reserve.
pub const HOT: &str = "hot";
/// An account that sends little.
pub const QUIET: &str = "quiet";
/// What the marketing lane may send of one account in a second, by default.
pub const CEILING: f64 = 80.0;

pub const SECOND: Duration = Duration::from_secs(1);

/// The surroundings of one part.
pub struct Stage {
    pub scene: Scene,
    pub queues: HotQueues,
    pub rabbit: Rabbit,
    // Kept for as long as they are used.
    _redis: RedisServer,
    _database: TestDatabase,
}

impl Stage {
    pub async fn new(name: &str) -> Self {
        let (rabbit, redis) = tokio::join!(Rabbit::start(), RedisServer::start());
        let database = TestDatabase::create().await;
        let scene = Scene::on(name, rabbit.url(), redis.url()).await;
        let scene = scene.with_own_queues();
        Self {
            scene: scene.recorded_at(database.url()),
            queues: HotQueues::of(database.pool()),
            rabbit,
            _redis: redis,
            _database: database,
        }
    }

    /// Settings of its workers.
    pub fn config(&self) -> WorkerConfig {
        self.scene.config.clone()
    }

    /// Starts workers, and waits until they have made spare queues: a few seconds.
    pub async fn start(&self, workers: usize, config: &WorkerConfig) -> Cluster {
        let cluster = Cluster::start(workers, config).await;
        self.queues.await_spare(30 * SECOND).await;
        cluster
    }

    /// Publishes an account's backlog as fast as the broker confirms; gives how long that took.
    pub async fn flood(&self, offers: Vec<Offer>) -> Duration {
        let publisher = self.scene.publisher().await;
        let began = Instant::now();
        publisher.publish_all(&offers).await;
        began.elapsed()
    }

    /// The same, and then waits until the account has its own queue and nothing is shed any more.
    pub async fn flood_and_settle(&self, offers: Vec<Offer>, cluster: &Cluster) {
        let lane = offers[0].lane;
        let jobs = offers.len();
        let took = self.flood(offers).await;
        self.queues.await_open(lane, 1, 30 * SECOND).await;
        let sheds = settled(cluster, lane).await;
        println!(
            "  {jobs} jobs at {:.0}/s, {sheds} sheds",
            per_second(jobs, took)
        );
    }

    /// Waits until nothing lies in the queues that accounts share, nor on the way back to them; gives
    /// how long that took.
    ///
    /// # Panics
    /// When it takes longer than three minutes.
    pub async fn shared_queues_clear(&self) -> Duration {
        let queues = self.scene.queues().await;
        let began = Instant::now();
        let mut clear_since = Instant::now();
        while clear_since.elapsed() < 2 * SECOND {
            if queues.all_ready().await > 0 {
                clear_since = Instant::now();
            }
            assert!(
                began.elapsed() < 180 * SECOND,
                "jobs still lie in shared queues"
            );
            tokio::time::sleep(SECOND / 4).await;
        }
        clear_since - began
    }
}

/// Waits until nothing has been shed for two seconds; gives how many were before.
async fn settled(cluster: &Cluster, lane: &str) -> u64 {
    let labels = [("lane", lane)];
    let mut sheds = cluster.count("lanekeeper_sheds_total", &labels).await;
    let mut since = Instant::now();
    while since.elapsed() < 2 * SECOND {
        tokio::time::sleep(SECOND / 4).await;
        let now = cluster.count("lanekeeper_sheds_total", &labels).await;
        if now > sheds {
            (sheds, since) = (now, Instant::now());
        }
    }
    sheds
}

/// An account's backlog.
pub fn backlog(jobs: usize, account: &str, lane: &str) -> Vec<Offer> {
    Offer::many(jobs, "bulk", |id| match lane {
        "transactional" => Offer::otp(account, id),
        _ => Offer::marketing(account, id),
    })
}

/// Stops the workers, after making sure that Redis decided everything.
pub async fn stop(cluster: Cluster) {
    let fallbacks = cluster.count(FALLBACKS, &[]).await;
    if fallbacks > 0 {
        println!("  {fallbacks} decisions were made without Redis");
    }
    cluster.stop().await;
}

#[expect(clippy::cast_precision_loss, reason = "a few hundred thousand at most")]
pub fn per_second(jobs: usize, took: Duration) -> f64 {
    jobs as f64 / took.as_secs_f64()
}

pub fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}
