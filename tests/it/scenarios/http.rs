//! The lanes over HTTP: two API servers and two workers on one account.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use super::{SECOND, highest, marketing};
use crate::support::api::{Answer, ApiServer, issue_key, message};
use crate::support::heavy;
use crate::support::jobs::Offer;
use crate::support::scene::{ACCOUNT, Scene, quantile};
use crate::support::worker::{Cluster, FALLBACKS, WorkerConfig};

/// Two API servers, and clients that spread their requests over both.
struct Door {
    servers: Arc<[ApiServer; 2]>,
    key: String,
}

/// What became of one request.
struct Sent {
    answer: Answer,
    took: Duration,
}

impl Door {
    async fn open(config: &WorkerConfig, key: String) -> Self {
        let first = ApiServer::start(config).await;
        let second = ApiServer::start(config).await;
        Self {
            servers: Arc::new([first, second]),
            key,
        }
    }

    /// Sends so many messages a second, one by one, and waits for all answers.
    async fn send_at(&self, per_second: u32, count: usize, priority: &'static str) -> Vec<Sent> {
        let mut ticks = interval(SECOND / per_second);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let mut sending = JoinSet::new();
        for number in 0..count {
            ticks.tick().await;
            let (servers, key) = (Arc::clone(&self.servers), self.key.clone());
            sending.spawn(async move {
                let started = Instant::now();
                let answer = servers[number % 2].send(&key, &message(priority)).await;
                Sent {
                    answer,
                    took: started.elapsed(),
                }
            });
        }
        sending.join_all().await
    }

    /// A client that does what `Retry-After` says until its message is accepted. Gives its id and
    /// how often it was shed.
    async fn send_until_accepted(&self, number: usize) -> (String, usize) {
        let mut sheds = 0;
        loop {
            let answer = self.servers[number % 2]
                .send(&self.key, &message("low"))
                .await;
            if answer.status == 202 {
                return (answer.message_id(), sheds);
            }
            assert_eq!(answer.status, 429, "{answer:?}");
            let wait: u64 = answer.header("retry-after").parse().unwrap();
            sheds += 1;
            sleep(SECOND * u32::try_from(wait).unwrap()).await;
        }
    }

    /// How often a server decided on its own, Redis being late.
    async fn decided_without_redis(&self) -> u64 {
        let [first, second] = &*self.servers;
        first.process.count(FALLBACKS, &[]).await + second.process.count(FALLBACKS, &[]).await
    }

    async fn close(self) {
        let servers = Arc::into_inner(self.servers).expect("every request is answered");
        for server in servers {
            server.process.stop().await;
        }
    }
}

fn ids_of(sent: &[Sent]) -> Vec<String> {
    let accepted = sent.iter().filter(|one| one.answer.status == 202);
    accepted.map(|one| one.answer.message_id()).collect()
}

/// Rule 3's worked example through the other door.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_http_a_campaign_leaves_the_reserve_to_passwords() {
    let _alone = heavy().await;
    let (scene, database) = Scene::with_database("http3").await;
    let key = issue_key(&database, ACCOUNT).await;
    let cluster = Cluster::start(2, &scene.config).await;
    let door = Door::open(&scene.config, key).await;
    // Connections and statements are ready before it counts.
    door.send_at(20, 4, "high").await;
    sleep(2 * SECOND).await;
    let before = scene.stub.count();
    let watch = scene.watch().await;

    let (low, high) = tokio::join!(
        door.send_at(250, 2_500, "low"),
        door.send_at(15, 150, "high")
    );
    let windows = watch.finish().await;
    let (low_ids, high_ids) = (ids_of(&low), ids_of(&high));
    let took: Vec<_> = high.iter().map(|one| one.took).collect();
    let (p50, p99) = (quantile(&took, 0.5), quantile(&took, 0.99));
    scene
        .stub
        .wait_for(before + low_ids.len() + high_ids.len(), 10 * SECOND)
        .await;
    println!(
        "figure: http3 low_offered=2500 low_accepted={} high_accepted={} high_p50_ms={:.1} high_p99_ms={:.1} windows={} highest={}",
        low_ids.len(),
        high_ids.len(),
        p50.as_secs_f64() * 1e3,
        p99.as_secs_f64() * 1e3,
        windows.len(),
        highest(&windows, 100),
    );
    assert_eq!(high_ids.len(), 150, "every password is accepted");
    let without_redis = usize::try_from(cluster.count(FALLBACKS, &[]).await).unwrap()
        + usize::try_from(door.decided_without_redis().await).unwrap();
    let room = 600..=820 + without_redis;
    assert!(room.contains(&low_ids.len()), "{}", low_ids.len());
    for one in low.iter().filter(|one| one.answer.status != 202) {
        let shed = &one.answer;
        assert_eq!(shed.status, 429, "{shed:?}");
        assert_eq!(shed.header("retry-after"), "1");
        assert_eq!(shed.header("x-ratelimit-limit"), "80");
        let details =
            json!({"retry_after": 1, "limit": 80, "window": "1s", "traffic_lane": "marketing"});
        assert_eq!(shed.body["error"]["details"], details);
        assert_eq!(shed.code(), "RATE_LIMIT_EXCEEDED");
    }
    for id in low_ids.iter().chain(&high_ids) {
        assert!(scene.stub.first(id).is_some(), "{id} is not at the carrier");
    }
    assert!(scene.stub.duplicates().is_empty());
    // None waits for the next window, as most would without a reserve. How quick they are on a machine
    // that does nothing else, `make bench` tells.
    assert!(p50 < Duration::from_millis(100), "p50 {p50:?}");
    assert!(p99 < SECOND, "p99 {p99:?}");
    door.close().await;
    cluster.stop().await;
    scene.end().await;
}

/// Whoever waits as long as it is told gets everything through.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_as_it_is_told_gets_everything_through() {
    let _alone = heavy().await;
    let (scene, database) = Scene::with_database("http-again").await;
    let key = issue_key(&database, ACCOUNT).await;
    let cluster = Cluster::start(1, &scene.config).await;
    let door = Arc::new(Door::open(&scene.config, key).await);
    let mut sending = JoinSet::new();
    for number in 0..300 {
        let door = Arc::clone(&door);
        sending.spawn(async move { door.send_until_accepted(number).await });
    }
    let accepted: HashMap<String, usize> = sending.join_all().await.into_iter().collect();
    scene.stub.wait_for(300, 10 * SECOND).await;
    println!(
        "figure: http_again messages=300 sheds={} most_sheds_of_one={}",
        accepted.values().sum::<usize>(),
        accepted.values().max().unwrap(),
    );
    assert!(accepted.keys().all(|id| scene.stub.first(id).is_some()));
    assert_eq!(scene.stub.count(), 300);
    Arc::into_inner(door)
        .expect("all have been answered")
        .close()
        .await;
    cluster.stop().await;
    scene.end().await;
}

/// A backlog in the queues and a client of the API draw on one budget, and what the API has counted
/// is not counted again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::cast_precision_loss, reason = "a few thousand at most")]
async fn the_api_and_a_backlog_share_one_budget() {
    let _alone = heavy().await;
    let (scene, database) = Scene::with_database("http-share").await;
    let key = issue_key(&database, ACCOUNT).await;
    let cluster = Cluster::start(2, &scene.config).await;
    let door = Door::open(&scene.config, key).await;
    door.send_at(20, 4, "high").await;
    let publisher = scene.publisher().await;
    publisher
        .publish_all(&Offer::many(100_000, "bulk", marketing))
        .await;
    sleep(SECOND).await;
    let started = Instant::now();
    let before = scene.stub.count();
    let watch = scene.watch().await;
    let sent = door.send_at(15, 150, "high").await;
    let windows = watch.finish().await;
    let during = scene.stub.count() - before;
    let took = started.elapsed();
    let ids = ids_of(&sent);
    let answers: Vec<_> = sent.iter().map(|one| one.took).collect();
    let arrived = Mutex::new(Vec::new());
    crate::support::eventually("the API's are at the carrier", SECOND, async || {
        *arrived.lock().unwrap() = ids.iter().filter_map(|id| scene.stub.first(id)).collect();
        arrived.lock().unwrap().len() == ids.len()
    })
    .await;
    println!(
        "figure: http_share backlog=100000 api_accepted={} answer_p99_ms={:.1} carrier_per_s={:.1} windows={} highest={}",
        ids.len(),
        quantile(&answers, 0.99).as_secs_f64() * 1e3,
        during as f64 / took.as_secs_f64(),
        windows.len(),
        highest(&windows, 100),
    );
    assert_eq!(ids.len(), 150);
    // 100 per window, and not 115: what came by the API was counted once, and never twice.
    let most = 100.0 * (took.as_secs_f64() + 1.0);
    assert!((during as f64) <= most, "{during} in {took:?}");
    assert!(scene.stub.duplicates().is_empty());
    door.close().await;
    cluster.stop().await;
    scene.end().await;
}
