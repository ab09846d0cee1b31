//! What a backlog costs, and whom it delays, with smaller numbers than `make bench` takes, and counts
//! rather than times where they tell the same: a busy machine is late, but counts as well as any.

mod beside;
mod cost;
mod many;

use std::fmt::Display;
use std::time::Duration;

use super::SECOND;
use crate::support::eventually;
use crate::support::flow::Flow;
use crate::support::hot_queues::HotQueues;
use crate::support::jobs::Offer;
use crate::support::postgres::TestDatabase;
use crate::support::scene::{ACCOUNT, Scene};
use crate::support::stub::Arrival;
use crate::support::worker::{Cluster, FALLBACKS};
use tokio::time::Instant;

/// What the marketing lane may send of the account in a second.
const CEILING: u64 = 80;

/// A scene in which accounts can have queues of their own.
struct Hot {
    scene: Scene,
    queues: HotQueues,
    _database: TestDatabase,
}

impl Hot {
    async fn new(name: &str) -> Self {
        let (scene, database) = Scene::with_database(name).await;
        let scene = scene.with_own_queues();
        Self {
            scene,
            queues: HotQueues::of(database.pool()),
            _database: database,
        }
    }

    fn set(mut self, name: &str, value: impl Display + Copy) -> Self {
        self.scene = self.scene.set(name, value);
        self
    }

    /// Starts workers, and waits until they have made spare queues.
    async fn start(&self, workers: usize) -> Cluster {
        let cluster = Cluster::start(workers, &self.scene.config).await;
        self.queues.await_spare(20 * SECOND).await;
        cluster
    }

    /// Publishes a backlog of the account, and waits until it has its own queue and what lay in the
    /// shared one has gone over.
    async fn settle(&self, backlog: &[Offer], cluster: &Cluster) {
        let lane = backlog[0].lane;
        self.scene.publisher().await.publish_all(backlog).await;
        self.queues.await_open(lane, 1, 30 * SECOND).await;
        let shared = self.scene.queues().await;
        let delayed = format!("{lane}.delay");
        let gone_over = async || {
            shared.ready(lane).await == 0
                && shared.ready(&delayed).await == 0
                && is_quiet(cluster, lane).await
        };
        eventually("nothing is shed any more", 60 * SECOND, gone_over).await;
    }

    /// Removes what it left in the broker; the workers must have stopped.
    async fn end(self) {
        self.queues.remove(&self.scene.amqp).await;
        self.scene.end().await;
    }
}

/// Whether nothing is shed for longer than a shed job stays in the delay queue, and workers take as many
/// as they send: each of them has its share in hand, and knows how large it is.
async fn is_quiet(cluster: &Cluster, lane: &str) -> bool {
    let before = Flow::of(cluster, lane).await;
    tokio::time::sleep(SECOND * 3 / 2).await;
    let flow = Flow::of(cluster, lane).await - before;
    flow.sheds == 0 && flow.deliveries * 4 >= flow.dispatched * 3
}

fn backlog(jobs: usize, lane: &str) -> Vec<Offer> {
    Offer::many(jobs, "bulk", |id| match lane {
        "transactional" => Offer::otp(ACCOUNT, id),
        _ => Offer::marketing(ACCOUNT, id),
    })
}

/// The most jobs of the account's backlog that reached the carrier while one of these was on its way.
fn most_overtaken<'a>(
    arrivals: &[Arrival],
    left_at: impl IntoIterator<Item = (&'a String, &'a Instant)>,
) -> usize {
    let bulk: Vec<_> = arrivals
        .iter()
        .filter(|arrival| arrival.id.starts_with("bulk-"))
        .map(|arrival| arrival.at)
        .collect();
    let overtaken = |(id, left): (&String, &Instant)| {
        let arrived = arrivals.iter().find(|arrival| arrival.id == *id);
        let arrived = arrived.unwrap_or_else(|| panic!("{id} has not arrived"));
        let meanwhile = bulk.iter().filter(|at| (*left..arrived.at).contains(at));
        meanwhile.count()
    };
    left_at.into_iter().map(overtaken).max().unwrap_or(0)
}

async fn stop(cluster: Cluster) {
    let fallbacks = cluster.count(FALLBACKS, &[]).await;
    println!("figure: hot fallbacks={fallbacks}");
    cluster.stop().await;
}

fn millis(durations: &[Duration], share: f64) -> u128 {
    crate::support::scene::quantile(durations, share).as_millis()
}
