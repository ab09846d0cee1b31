//! What most scenarios have: a prefix of their own, a stub carrier, settings for its workers.

use std::fmt::Display;
use std::time::Duration;

use super::events::Events;
use super::jobs::Publisher;
use super::postgres::TestDatabase;
use super::queues::Queues;
use super::stub::Stub;
use super::watch::CounterWatch;
use super::worker::{WorkerConfig, declare};
use super::{amqp_url, eventually, redis_url, unique_prefix};

/// The account of most jobs.
pub const ACCOUNT: &str = "acme";

/// One scenario's surroundings.
pub struct Scene {
    pub prefix: String,
    pub amqp: String,
    pub redis: String,
    pub stub: Stub,
    pub config: WorkerConfig,
}

impl Scene {
    /// On the shared services.
    pub async fn new(name: &str) -> Self {
        Self::on(name, amqp_url(), redis_url()).await
    }

    /// On the shared services, with a database of its own.
    pub async fn with_database(name: &str) -> (Self, TestDatabase) {
        let database = TestDatabase::create().await;
        let scene = Self::new(name).await.recorded_at(database.url());
        (scene, database)
    }

    /// On these services.
    pub async fn on(name: &str, amqp: String, redis: String) -> Self {
        let prefix = unique_prefix(name);
        let stub = Stub::start().await;
        let config = WorkerConfig::new(&prefix)
            .set("AMQP__URL", &amqp)
            .set("REDIS__URL", &redis)
            .carrier(&stub.url);
        Self {
            prefix,
            amqp,
            redis,
            stub,
            config,
        }
    }

    /// With another setting for its workers.
    pub fn set(mut self, name: &str, value: impl Display + Copy) -> Self {
        self.config = self.config.set(name, value);
        self
    }

    /// With queues of accounts' own, as many as by default.
    pub fn with_own_queues(self) -> Self {
        self.set("HOT__MOST", 200)
    }

    /// With a database for its workers.
    pub fn recorded_at(self, url: &str) -> Self {
        self.set("DATABASE__URL", url)
    }

    /// Declares the queues, so that jobs can be queued before any worker runs.
    pub async fn declare(&self) {
        declare(&self.config).await;
    }

    pub async fn publisher(&self) -> Publisher {
        Publisher::connect(&self.amqp, &self.prefix).await
    }

    pub async fn queues(&self) -> Queues {
        Queues::connect(&self.amqp, &self.prefix).await
    }

    /// Every outcome event from now on; the queues must have been declared.
    pub async fn events(&self) -> Events {
        Events::listen(&self.amqp, &self.prefix).await
    }

    pub async fn watch(&self) -> CounterWatch {
        self.watch_of(ACCOUNT).await
    }

    pub async fn watch_of(&self, account: &str) -> CounterWatch {
        CounterWatch::start(&self.redis, &self.prefix, account).await
    }

    /// Every job has left the queues, or does so soon.
    pub async fn assert_drained(&self) {
        let queues = self.queues().await;
        let empty = async || queues.all_ready().await == 0;
        eventually("all queues empty", Duration::from_secs(10), empty).await;
    }

    /// Removes what it left in the broker.
    pub async fn end(self) {
        self.queues().await.remove().await;
    }
}

/// The value below which `share` of them lie, such as 0.99.
pub fn quantile(durations: &[Duration], share: f64) -> Duration {
    let mut sorted = durations.to_vec();
    sorted.sort();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a few thousand at most, and never negative"
    )]
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

#[test]
fn quantiles_are_nearest_ranks() {
    let durations: Vec<_> = (1..=100).rev().map(Duration::from_millis).collect();
    assert_eq!(quantile(&durations, 0.99), Duration::from_millis(99));
    assert_eq!(quantile(&durations, 0.5), Duration::from_millis(50));
    assert_eq!(quantile(&durations[..1], 0.99), Duration::from_millis(100));
}
