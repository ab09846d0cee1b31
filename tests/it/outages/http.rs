//! What clients of the API see when the broker, PostgreSQL or Redis goes away: an answer in time, and
//! nothing accepted that is in no queue.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, sleep};

use super::SECOND;
use crate::support::api::{Answer, ApiServer, issue_key_at, message};
use crate::support::postgres::PrivatePostgres;
use crate::support::rabbit::Rabbit;
use crate::support::redis::RedisServer;
use crate::support::scene::{ACCOUNT, Scene};
use crate::support::worker::{FALLBACKS, Worker, declare};
use crate::support::{amqp_url, eventually, heavy, redis_url};

/// What is promised, and a little for a busy machine's clients.
const IN_TIME: Duration = Duration::from_millis(2_600);

async fn burst(api: &ApiServer, key: &str, count: usize) -> Vec<(Answer, Duration)> {
    let body = message("high");
    let send = async || {
        let started = Instant::now();
        let answer = api.send(key, &body).await;
        (answer, started.elapsed())
    };
    join_all((0..count).map(|_| send())).await
}

fn assert_unavailable(answers: &[(Answer, Duration)], fault: &str) {
    for (answer, took) in answers {
        assert_eq!(answer.status, 503, "{fault}: {answer:?}");
        assert_eq!(answer.code(), "SERVICE_UNAVAILABLE");
        assert!(answer.header("retry-after").parse::<u64>().unwrap() >= 1);
        assert!(*took < IN_TIME, "{fault}: {took:?}");
    }
    let longest = answers.iter().map(|(_, took)| took.as_millis()).max();
    println!(
        "figure: http_{fault} answers={} longest_ms={}",
        answers.len(),
        longest.unwrap()
    );
}

/// Every accepted message is at the carrier in the end; those that were unknown may be.
async fn assert_accepted_arrive(scene: &Scene, accepted: &[String]) {
    eventually(
        "all that was accepted is at the carrier",
        30 * SECOND,
        async || accepted.iter().all(|id| scene.stub.first(id).is_some()),
    )
    .await;
}

/// The broker raises an alarm, freezes, and dies; the API answers in time, ends in time, and goes on
/// by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_broker_every_answer_comes_in_time_and_nothing_is_accepted() {
    let mut rabbit = Rabbit::start().await;
    let _alone = heavy().await;
    let postgres = PrivatePostgres::start_migrated().await;
    let key = issue_key_at(&postgres.pool(), ACCOUNT).await;
    let scene = Scene::on("http-rabbit", rabbit.url(), redis_url()).await;
    let scene = scene
        .recorded_at(&postgres.url())
        .set("LANES__BUDGET_PER_SECOND", 10_000)
        .set("AMQP__HEARTBEAT_S", 1);
    let mut api = ApiServer::start(&scene.config).await;
    let mut accepted = Vec::new();
    accepted.push(api.send(&key, &message("high")).await.message_id());

    rabbit.raise_memory_alarm().await;
    eventually("the alarm is noticed", 10 * SECOND, async || {
        api.send(&key, &message("high")).await.status == 503
    })
    .await;
    assert_unavailable(&burst(&api, &key, 200).await, "alarm");
    rabbit.clear_memory_alarm().await;
    accepted.push(again(&api, &key).await);

    rabbit.freeze();
    assert_unavailable(&burst(&api, &key, 50).await, "frozen");
    sleep(3 * SECOND).await;
    assert_unavailable(&burst(&api, &key, 50).await, "frozen_long");
    rabbit.thaw();
    accepted.push(again(&api, &key).await);

    rabbit.kill();
    assert_unavailable(&burst(&api, &key, 50).await, "dead");
    // It ends in time without a broker to take leave of.
    api.process.sigterm();
    let ended = api.process.wait_exit(10 * SECOND).await;
    assert!(ended.success());
    rabbit.restart().await;
    let worker = Worker::start(&scene.config).await;
    assert_accepted_arrive(&scene, &accepted).await;
    worker.stop().await;
    scene.end().await;
}

/// Sends until something is accepted again; gives its id.
async fn again(api: &ApiServer, key: &str) -> String {
    let deadline = Instant::now() + 30 * SECOND;
    loop {
        let answer = api.send(key, &message("high")).await;
        if answer.status == 202 {
            return answer.message_id();
        }
        assert!(
            Instant::now() < deadline,
            "{answer:?}\n{}",
            api.process.log()
        );
        sleep(SECOND / 10).await;
    }
}

/// A queue that is gone: what finds no queue is not accepted, and it comes back by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_finds_no_queue_is_not_accepted() {
    let _alone = heavy().await;
    let (scene, database) = Scene::with_database("http-noqueue").await;
    let key = issue_key_at(database.pool(), ACCOUNT).await;
    declare(&scene.config).await;
    let api = ApiServer::start(&scene.config).await;
    api.send(&key, &message("high")).await.message_id();
    scene.queues().await.delete("transactional.admitted").await;
    let (lost, _) = &burst(&api, &key, 1).await[0];
    assert_eq!(
        (lost.status.as_u16(), lost.code()),
        (503, "SERVICE_UNAVAILABLE")
    );
    assert_eq!(lost.body["error"]["details"]["queued"], false);
    again(&api, &key).await;
    api.process.stop().await;
    scene.end().await;
}

/// PostgreSQL stops and freezes: nobody can say who has opted out, so nothing is accepted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_database_every_answer_comes_in_time() {
    let _alone = heavy().await;
    let mut postgres = PrivatePostgres::start_migrated().await;
    let key = issue_key_at(&postgres.pool(), ACCOUNT).await;
    let scene = Scene::on("http-postgres", amqp_url(), redis_url()).await;
    let scene = scene.recorded_at(&postgres.url());
    let api = ApiServer::start(&scene.config).await;
    let mut accepted = vec![api.send(&key, &message("high")).await.message_id()];
    postgres.freeze();
    assert_unavailable(&burst(&api, &key, 50).await, "database_frozen");
    postgres.thaw();
    accepted.push(again(&api, &key).await);
    postgres.stop().await;
    assert_unavailable(&burst(&api, &key, 50).await, "database_stopped");
    postgres.restart().await;
    accepted.push(again(&api, &key).await);
    let worker = Worker::start(&scene.config).await;
    assert_accepted_arrive(&scene, &accepted).await;
    worker.stop().await;
    api.process.stop().await;
    scene.end().await;
}

/// Without Redis an API server falls open like a worker: same ceilings, same answers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_redis_the_ceilings_hold_in_this_process() {
    let _alone = heavy().await;
    let mut redis = RedisServer::start().await;
    let (scene, database) = {
        let scene = Scene::on("http-redis", amqp_url(), redis.url()).await;
        let database = crate::support::postgres::TestDatabase::create().await;
        (scene.recorded_at(database.url()), database)
    };
    let key = issue_key_at(database.pool(), ACCOUNT).await;
    let api = ApiServer::start(&scene.config).await;
    api.send(&key, &message("high")).await.message_id();
    redis.stop().await;
    sleep(2 * SECOND).await;
    let before = Instant::now();
    let answers = burst(&api, &key, 400).await;
    let took = before.elapsed();
    let accepted = answers.iter().filter(|(answer, _)| answer.status == 202);
    let accepted = accepted.count();
    let windows = 1 + usize::try_from(took.as_secs()).unwrap() + 1;
    println!(
        "figure: http_redis_stopped offered=400 accepted={accepted} took_ms={}",
        took.as_millis()
    );
    assert!(
        (100..=100 * windows).contains(&accepted),
        "{accepted} in {took:?}"
    );
    for (answer, took) in &answers {
        assert!([202, 429].contains(&answer.status.as_u16()), "{answer:?}");
        assert!(*took < IN_TIME);
    }
    assert!(api.process.count(FALLBACKS, &[]).await >= 400);
    redis.restart().await;
    let worker = Worker::start(&scene.config).await;
    let ids = answers.iter().filter(|(answer, _)| answer.status == 202);
    let ids: Vec<_> = ids.map(|(answer, _)| answer.message_id()).collect();
    assert_accepted_arrive(&scene, &ids).await;
    worker.stop().await;
    api.process.stop().await;
    scene.end().await;
}

/// Everything that was accepted before the end is stored, however fast the end comes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_told_to_stop_finishes_what_it_has_accepted() {
    let _alone = heavy().await;
    let (scene, database) = Scene::with_database("http-stop").await;
    let key = issue_key_at(database.pool(), ACCOUNT).await;
    let scene = scene
        .set("LANES__BUDGET_PER_SECOND", 100_000)
        .set("API__REQUESTS_PER_SECOND", 0);
    let mut api = ApiServer::start(&scene.config).await;
    let accepted = burst(&api, &key, 1_000).await;
    api.process.sigterm();
    assert!(api.process.wait_exit(10 * SECOND).await.success());
    let ids: Vec<_> = accepted
        .iter()
        .map(|(answer, _)| answer.message_id())
        .collect();
    let queues = scene.queues().await;
    assert_eq!(queues.ready("transactional.admitted").await, ids.len());
    let worker = Worker::start(&scene.config).await;
    assert_accepted_arrive(&scene, &ids).await;
    worker.stop().await;
    scene.end().await;
}
