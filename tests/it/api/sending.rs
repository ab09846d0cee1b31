//! Single messages: accepted, refused, shed.

use std::time::Duration;

use reqwest::{Method, header};
use serde_json::{Value, json};

use crate::support::api::{
    Answer, ApiServer, DEV_KEY, RECIPIENT, answer, issue_key, issue_key_with, message,
};
use crate::support::eventually;
use crate::support::scene::{ACCOUNT, Scene};
use crate::support::worker::Worker;

const SOON: Duration = Duration::from_secs(10);

fn assert_accepted(answer: &Answer, lane: &str, limit: &str) {
    assert_eq!(answer.status, 202, "{answer:?}");
    let data = &answer.body["data"];
    let id = data["message_id"].as_str().unwrap();
    let digits = id.strip_prefix("msg_").unwrap();
    assert_eq!(digits.len(), 32);
    assert!(digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert_eq!(data["channel"], "sms");
    assert_eq!(data["to"], RECIPIENT);
    assert_eq!(data["status"], "queued");
    assert_eq!(data["traffic_lane"], lane);
    assert!(data["created_at"].as_str().unwrap().ends_with('Z'));
    assert!(answer.body["meta"]["timestamp"].is_string());
    assert_eq!(answer.header("x-ratelimit-limit"), limit);
}

#[tokio::test]
async fn what_is_accepted_by_the_lane_that_it_names_is_at_the_carrier() {
    let (scene, database) = Scene::with_database("api-send").await;
    let key = issue_key(&database, ACCOUNT).await;
    let campaign = issue_key_with(&database, ACCOUNT, &["send"], "campaign").await;
    let worker = Worker::start(&scene.config).await;
    let api = ApiServer::start(&scene.config).await;
    let high = api.send(&key, &message("high")).await;
    assert_accepted(&high, "transactional", "100");
    let low = api.send(&key, &message("low")).await;
    assert_accepted(&low, "marketing", "80");
    let plain = api
        .send(&key, &json!({"to": "+44 7700 900123", "content": {"a": 1}}))
        .await;
    assert_accepted(&plain, "transactional", "100");
    scene.stub.wait_for(3, SOON).await;
    let arrivals = scene.stub.arrivals();
    for (answer, lane) in [(&high, "transactional"), (&low, "marketing")] {
        let id = answer.message_id();
        let arrival = arrivals.iter().find(|one| one.id == id).unwrap();
        assert_eq!((&*arrival.lane, &*arrival.account), (lane, ACCOUNT));
        assert_eq!(arrival.key, format!("{ACCOUNT}:{id}"));
    }
    let of_campaign = api
        .send(&campaign, &json!({"to": RECIPIENT, "body": "x"}))
        .await;
    assert_accepted(&of_campaign, "marketing", "80");
    api.process.stop().await;
    worker.stop().await;
    scene.end().await;
}

#[tokio::test]
async fn over_the_ceiling_the_answer_says_which_and_when_to_come_again() {
    let (scene, database) = Scene::with_database("api-429").await;
    let key = issue_key(&database, ACCOUNT).await;
    let scene = scene.set("LANES__BUDGET_PER_SECOND", 5);
    let api = ApiServer::start(&scene.config).await;
    let shed = first_429(&api, &key, "low").await;
    assert_eq!(shed.code(), "RATE_LIMIT_EXCEEDED");
    assert_eq!(shed.header("retry-after"), "1");
    assert_eq!(shed.header("x-ratelimit-limit"), "4");
    assert_eq!(shed.header("x-ratelimit-remaining"), "0");
    assert!(shed.header("x-ratelimit-reset").parse::<u64>().unwrap() > 1_700_000_000);
    let expected =
        json!({"retry_after": 1, "limit": 4, "window": "1s", "traffic_lane": "marketing"});
    assert_eq!(shed.body["error"]["details"], expected);
    assert_eq!(shed.body["error"]["status"], 429);
    let shed = first_429(&api, &key, "high").await;
    let expected =
        json!({"retry_after": 1, "limit": 5, "window": "1s", "traffic_lane": "transactional"});
    assert_eq!(shed.body["error"]["details"], expected);
    api.process.stop().await;
    scene.end().await;
}

async fn first_429(api: &ApiServer, key: &str, priority: &str) -> Answer {
    for _ in 0..500 {
        let answer = api.send(key, &message(priority)).await;
        if answer.status == 429 {
            return answer;
        }
        assert_eq!(answer.status, 202, "{answer:?}");
    }
    panic!("nothing was shed");
}

#[tokio::test]
async fn who_has_no_valid_key_is_told_nothing_else() {
    let (scene, database) = Scene::with_database("api-key").await;
    let key = issue_key(&database, ACCOUNT).await;
    let reader = issue_key_with(&database, ACCOUNT, &["read"], "api").await;
    let api = ApiServer::start(&scene.config).await;
    for wrong in ["", "S3NTINEL", DEV_KEY, &key[..key.len() - 1]] {
        let refused = api.send(wrong, &json!({"to": 1})).await;
        assert_eq!(
            (refused.status.as_u16(), refused.code()),
            (401, "INVALID_API_KEY")
        );
    }
    let none = reqwest::Client::new().post(api.url("/api/v1/messages/sms"));
    assert_eq!(answer(none).await.status, 401);
    let twice = api
        .sending(&key, &message("high"))
        .header("X-API-Key", &key);
    assert_eq!(answer(twice).await.status, 401);
    let refused = api.send(&reader, &message("high")).await;
    assert_eq!(
        (refused.status.as_u16(), refused.code()),
        (403, "FORBIDDEN")
    );
    assert_eq!(api.send(&key, &message("high")).await.status, 202);
    let revoke = sqlx::query("UPDATE api_keys SET revoked_at = now()");
    revoke.execute(database.pool()).await.unwrap();
    let revoked = async || api.send(&key, &message("high")).await.status == 401;
    eventually("the key is revoked", Duration::from_secs(1), revoked).await;
    let secret = key.rsplit('_').next().unwrap();
    assert!(!api.process.log().contains(secret));
    api.process.stop().await;
    scene.end().await;
}

#[tokio::test]
async fn what_the_gates_say_is_answered_and_costs_nothing() {
    let (scene, database) = Scene::with_database("api-gates").await;
    let key = issue_key(&database, ACCOUNT).await;
    let run = async |statement: &str| {
        sqlx::raw_sql(statement)
            .execute(database.pool())
            .await
            .unwrap();
    };
    run("INSERT INTO suppressions (account_id, recipient, scope) VALUES ('acme', '+447700900999', 'all')").await;
    run("INSERT INTO accounts (account_id) VALUES ('acme'); INSERT INTO frequency_caps (account_id, name, max_messages, window_seconds) VALUES ('acme', 'once', 1, 3600)").await;
    let api = ApiServer::start(&scene.config).await;
    let opted_out = api
        .send(
            &key,
            &json!({"to": "+447700900999", "body": "x", "priority": "high"}),
        )
        .await;
    assert_eq!(
        (opted_out.status.as_u16(), opted_out.code()),
        (403, "RECIPIENT_OPTED_OUT")
    );
    assert_eq!(opted_out.header("x-ratelimit-remaining"), "100");
    let end = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(2);
    let mut short = message("high");
    short["expires_at"] = format!("{end:.3}").into();
    assert_eq!(api.send(&key, &short).await.status, 202);
    let capped = api.send(&key, &message("high")).await;
    assert_eq!(
        (capped.status.as_u16(), capped.code()),
        (429, "FREQUENCY_CAP_EXCEEDED")
    );
    let wait: u64 = capped.header("retry-after").parse().unwrap();
    assert!((3_500..=3_600).contains(&wait), "{wait}");
    assert_eq!(capped.header("x-ratelimit-remaining"), "99");
    // Nobody has taken the first one: a worker that finds it too old gives its place back.
    let over = async || jiff::Timestamp::now() > end;
    eventually("the first message's end", SOON, over).await;
    let worker = Worker::start(&scene.config).await;
    let passes = async || api.send(&key, &message("high")).await.status == 202;
    eventually("there is room for another message", SOON, passes).await;
    worker.stop().await;
    run("INSERT INTO holds (account_id, kind, target, state) VALUES ('acme', 'account', 'acme', 'paused')").await;
    let paused = api
        .send(&key, &json!({"to": "+447700900124", "body": "x"}))
        .await;
    assert_eq!(
        (paused.status.as_u16(), paused.code()),
        (402, "ACCOUNT_PAUSED")
    );
    api.process.stop().await;
    scene.end().await;
}

#[tokio::test]
async fn what_must_wait_waits_unmetered() {
    let (scene, database) = Scene::with_database("api-wait").await;
    let key = issue_key(&database, ACCOUNT).await;
    let api = ApiServer::start(&scene.config).await;
    let later = json!({"to": RECIPIENT, "body": "x", "not_before": "2099-01-01T00:00:00Z"});
    let answer = api.send(&key, &later).await;
    assert_eq!(
        answer.body["data"]["waits_until"],
        "2099-01-01T00:00:00.000Z"
    );
    assert_eq!(answer.header("x-ratelimit-remaining"), "100");
    let waiting = sqlx::query_scalar("SELECT id FROM waiting WHERE account_id = 'acme'");
    let waiting: Vec<String> = waiting.fetch_all(database.pool()).await.unwrap();
    assert_eq!(waiting, [answer.message_id()]);
    api.process.stop().await;
    scene.end().await;
}

#[tokio::test]
async fn every_wrong_request_gets_the_envelope() {
    let api = ApiServer::dev().await;
    let sending = || api.request(Method::POST, "/api/v1/messages/sms", DEV_KEY);
    let json_type = ("content-type", "application/json");
    let large = "x".repeat(256 * 1024 + 1);
    for (request, status, code) in [
        (sending().body("{}"), 415, "UNSUPPORTED_MEDIA_TYPE"),
        (
            sending()
                .header(header::CONTENT_TYPE, "text/plain")
                .body("{}"),
            415,
            "UNSUPPORTED_MEDIA_TYPE",
        ),
        (
            sending().header(json_type.0, json_type.1).body("{"),
            400,
            "MALFORMED_BODY",
        ),
        (
            sending()
                .header(json_type.0, json_type.1)
                .body(vec![0xff, 0xfe]),
            400,
            "MALFORMED_BODY",
        ),
        (sending().json(&json!([])), 422, "VALIDATION_ERROR"),
        (
            sending().json(&json!({"to": "12", "body": "x"})),
            422,
            "INVALID_PHONE_NUMBER",
        ),
        (
            sending().header(json_type.0, json_type.1).body(large),
            413,
            "PAYLOAD_TOO_LARGE",
        ),
        (
            api.request(Method::GET, "/api/v1/nothing", DEV_KEY),
            404,
            "NOT_FOUND",
        ),
        (
            api.request(Method::PUT, "/api/v1/messages/sms", DEV_KEY),
            405,
            "METHOD_NOT_ALLOWED",
        ),
        (
            api.request(Method::POST, "/api/v1/messages/pigeon", DEV_KEY)
                .json(&message("high")),
            422,
            "VALIDATION_ERROR",
        ),
    ] {
        let answer = answer(request).await;
        assert_eq!(
            (answer.status.as_u16(), answer.code()),
            (status, code),
            "{answer:?}"
        );
        assert_eq!(answer.body["error"]["status"], status);
    }
    api.process.stop().await;
}

#[tokio::test]
async fn dev_needs_no_service_and_keeps_the_lanes() {
    let api = ApiServer::dev().await;
    assert_accepted(
        &api.send(DEV_KEY, &message("high")).await,
        "transactional",
        "100",
    );
    assert_accepted(&api.send(DEV_KEY, &message("low")).await, "marketing", "80");
    let mut shed: Option<Value> = None;
    for _ in 0..500 {
        let answer = api.send(DEV_KEY, &message("low")).await;
        if answer.status == 429 {
            shed = Some(answer.body["error"]["details"]["limit"].clone());
            break;
        }
    }
    assert_eq!(shed, Some(json!(80)));
    api.process.stop().await;
}
