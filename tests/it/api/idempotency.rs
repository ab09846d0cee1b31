//! A request that is repeated with its `Idempotency-Key` is one message.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::api::{Answer, ApiServer, DEV_KEY, RECIPIENT, answer, issue_key, message};
use crate::support::scene::{ACCOUNT, Scene};
use crate::support::worker::Worker;

const SOON: Duration = Duration::from_secs(10);

async fn keyed(api: &ApiServer, key: &str, idempotency: &str, message: &Value) -> Answer {
    answer(
        api.sending(key, message)
            .header("Idempotency-Key", idempotency),
    )
    .await
}

#[tokio::test]
async fn fifty_at_once_over_two_servers_are_one_message() {
    let (scene, database) = Scene::with_database("api-idem").await;
    let key = issue_key(&database, ACCOUNT).await;
    let worker = Worker::start(&scene.config).await;
    let servers = [
        ApiServer::start(&scene.config).await,
        ApiServer::start(&scene.config).await,
    ];
    let body = message("high");
    let sends = (0..50).map(|number| keyed(&servers[number % 2], &key, "otp-1", &body));
    let answers = join_all(sends).await;
    let id = answers[0].message_id();
    assert!(answers.iter().all(|answer| answer.message_id() == id));
    scene.stub.wait_for(1, SOON).await;
    let again = keyed(&servers[1], &key, "otp-1", &body).await;
    assert_eq!(again.header("idempotent-replayed"), "true");
    assert_eq!(again.message_id(), id);
    // Whatever was published twice has come round by then.
    let marker = keyed(&servers[0], &key, "otp-2", &body).await.message_id();
    scene.stub.wait_for(2, SOON).await;
    scene.assert_drained().await;
    let mut arrived: Vec<_> = scene
        .stub
        .arrivals()
        .into_iter()
        .map(|one| one.id)
        .collect();
    arrived.sort();
    let mut expected = [id, marker];
    expected.sort();
    assert_eq!(arrived, expected);
    for server in servers {
        server.process.stop().await;
    }
    worker.stop().await;
    scene.end().await;
}

#[tokio::test]
async fn a_key_stands_for_one_body_of_one_account_and_endpoint() {
    let (scene, database) = Scene::with_database("api-idem-scope").await;
    let key = issue_key(&database, ACCOUNT).await;
    let other_account = issue_key(&database, "other").await;
    let api = ApiServer::start(&scene.config).await;
    one_body_per_key(&api, &key).await;
    let first = keyed(&api, &key, "k", &message("high")).await.message_id();
    let other = keyed(&api, &other_account, "k", &message("high"))
        .await
        .message_id();
    assert_ne!(first, other);
    let whatsapp = api
        .request(reqwest::Method::POST, "/api/v1/messages/whatsapp", &key)
        .json(&message("high"))
        .header("Idempotency-Key", "k");
    assert_ne!(answer(whatsapp).await.message_id(), first);
    api.process.stop().await;
    scene.end().await;
}

#[tokio::test]
async fn what_waits_or_is_over_is_told_as_it_was_first() {
    let (scene, database) = Scene::with_database("api-idem-wait").await;
    let key = issue_key(&database, ACCOUNT).await;
    let api = ApiServer::start(&scene.config).await;
    let in_millis = |millis| {
        let at = jiff::Timestamp::now() + jiff::SignedDuration::from_millis(millis);
        format!("{at:.3}")
    };
    let mut waits = message("high");
    waits["not_before"] = in_millis(3_600_000).into();
    let first = keyed(&api, &key, "waits", &waits).await;
    assert_eq!(first.body["data"]["waits_until"], waits["not_before"]);
    let again = keyed(&api, &key, "waits", &waits).await;
    assert_eq!(again.body["data"], first.body["data"]);
    let mut short = message("high");
    short["expires_at"] = in_millis(1_500).into();
    let first = keyed(&api, &key, "short", &short).await;
    assert_eq!(first.status, 202);
    let over = async || api.send(&key, &short).await.status == 422;
    crate::support::eventually("the message's end", SOON, over).await;
    let again = keyed(&api, &key, "short", &short).await;
    assert_eq!(again.status, 202);
    assert_eq!(again.body["data"], first.body["data"]);
    api.process.stop().await;
    scene.end().await;
}

#[tokio::test]
async fn dev_keeps_first_answers_too() {
    let api = ApiServer::dev().await;
    one_body_per_key(&api, DEV_KEY).await;
    api.process.stop().await;
}

async fn one_body_per_key(api: &ApiServer, key: &str) {
    let first = keyed(api, key, "a", &message("high")).await;
    let again = keyed(api, key, "a", &message("high")).await;
    assert_eq!(first.body["data"], again.body["data"]);
    assert_eq!(again.header("idempotent-replayed"), "true");
    let other = keyed(api, key, "a", &json!({"to": RECIPIENT, "body": "another"})).await;
    assert_eq!(
        (other.status.as_u16(), other.code()),
        (409, "IDEMPOTENCY_KEY_REUSED")
    );
    // What has come to nothing takes no key.
    let wrong = keyed(api, key, "b", &json!({"to": "12", "body": "x"})).await;
    assert_eq!(wrong.status, 422);
    assert_eq!(keyed(api, key, "b", &message("high")).await.status, 202);
    for bad in ["", "two words", &"k".repeat(256)] {
        let refused = keyed(api, key, bad, &message("high")).await;
        assert_eq!(
            (refused.status.as_u16(), refused.code()),
            (422, "VALIDATION_ERROR")
        );
        assert_eq!(refused.body["error"]["details"]["field"], "Idempotency-Key");
    }
}

#[tokio::test]
async fn a_send_that_was_shed_takes_no_key() {
    let (scene, database) = Scene::with_database("api-idem-429").await;
    let key = issue_key(&database, ACCOUNT).await;
    let scene = scene
        .set("LANES__BUDGET_PER_SECOND", 1)
        .set("LANES__RESERVE_PERCENT", 0);
    let api = ApiServer::start(&scene.config).await;
    let mut shed = None;
    for number in 0..100 {
        let idempotency = format!("k{number}");
        if keyed(&api, &key, &idempotency, &message("low"))
            .await
            .status
            == 429
        {
            shed = Some(idempotency);
            break;
        }
    }
    let shed = shed.unwrap();
    let other = json!({"to": RECIPIENT, "body": "another", "priority": "low"});
    let accepted = async || keyed(&api, &key, &shed, &other).await.status == 202;
    crate::support::eventually("another body is accepted", SOON, accepted).await;
    api.process.stop().await;
    scene.end().await;
}
