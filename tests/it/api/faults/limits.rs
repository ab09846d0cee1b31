//! Limits: told in one form, charged for nothing but what is sent.

use std::time::Duration;

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::interval;

use crate::support::api::{Answer, ApiServer, DEV_KEY, RECIPIENT, answer, issue_key, message};
use crate::support::scene::{ACCOUNT, Scene};
use crate::support::worker::WorkerConfig;
use crate::support::{eventually, heavy};

/// More than any of these limits lets pass at once.
const MANY: usize = 60;

fn to(number: &str, more: &[(&str, &str)]) -> Value {
    let mut message = json!({"to": number, "body": "x", "priority": "high"});
    for (name, value) in more {
        message[*name] = json!(value);
    }
    message
}

/// Sends until one is shed.
async fn shed(api: &ApiServer, key: &str, message: &Value) -> Answer {
    let answers = join_all((0..MANY).map(|_| api.send(key, message))).await;
    let accepted = answers.iter().filter(|answer| answer.status == 202);
    assert!(accepted.count() > 0, "{:?}", answers[0]);
    let shed = answers.into_iter().find(|answer| answer.status == 429);
    shed.unwrap_or_else(|| panic!("none of {MANY} was shed: {message}"))
}

/// The one form; `limit` is all that the details have beside what all of them have.
fn assert_form(shed: &Answer, limit: &Value) {
    assert_eq!(shed.header("content-type"), "application/json");
    assert_eq!(shed.header("retry-after"), "1");
    let error = &shed.body["error"];
    assert_eq!(error["code"], "RATE_LIMIT_EXCEEDED");
    assert_eq!(error["status"], 429);
    let mut expected = limit.clone();
    expected["retry_after"] = json!(1);
    expected["window"] = json!("1s");
    assert_eq!(error["details"], expected);
    assert!(shed.body["meta"]["timestamp"].is_string());
}

async fn limited(name: &str) -> (Scene, crate::support::postgres::TestDatabase) {
    let (scene, database) = Scene::with_database(name).await;
    let statement = "INSERT INTO accounts (account_id) VALUES ('acme');
        INSERT INTO ceilings (account_id, kind, target, per_second) VALUES
            ('acme', 'number', '+447700900555', 2), ('acme', 'service', 'shop', 3)";
    let written = sqlx::raw_sql(statement).execute(database.pool()).await;
    written.unwrap();
    (scene.set("LANES__BUDGET_PER_SECOND", 10), database)
}

async fn assert_every_limit(api: &ApiServer, key: &str) {
    let low = json!({"to": RECIPIENT, "body": "x", "priority": "low"});
    let of_number = shed(api, key, &to(RECIPIENT, &[("from", "+447700900555")])).await;
    assert_form(&of_number, &json!({"limit": 2, "limit_type": "number"}));
    let of_service = shed(api, key, &to(RECIPIENT, &[("service_id", "shop")])).await;
    assert_form(&of_service, &json!({"limit": 3, "limit_type": "service"}));
    let marketing = shed(api, key, &low).await;
    assert_form(
        &marketing,
        &json!({"limit": 8, "traffic_lane": "marketing"}),
    );
    let transactional = shed(api, key, &message("high")).await;
    assert_form(
        &transactional,
        &json!({"limit": 10, "traffic_lane": "transactional"}),
    );
    for answer in [of_number, of_service, marketing, transactional] {
        for header in [
            "x-ratelimit-limit",
            "x-ratelimit-remaining",
            "x-ratelimit-reset",
        ] {
            assert!(answer.header(header).parse::<u64>().is_ok(), "{header}");
        }
    }
}

#[tokio::test]
async fn whichever_limit_is_reached_is_told_in_one_form() {
    let (scene, database) = limited("api-429-form").await;
    let key = issue_key(&database, ACCOUNT).await;
    let api = ApiServer::start(&scene.config).await;
    assert_every_limit(&api, &key).await;
    api.process.stop().await;
    // The same while Redis is away.
    let away = scene
        .config
        .clone()
        .set("REDIS__URL", "redis://127.0.0.1:1");
    let api = ApiServer::start(&away).await;
    assert_every_limit(&api, &key).await;
    api.process.stop().await;
    scene.end().await;
}

#[tokio::test]
async fn too_many_requests_of_a_key_are_told_in_the_same_form() {
    let config = WorkerConfig::new("unused").set("API__REQUESTS_PER_SECOND", 5);
    let api = ApiServer::dev_with(&config).await;
    for path in ["/api/v1/messages/sms", "/api/v1/nothing"] {
        let asking = || answer(api.request(Method::GET, path, DEV_KEY));
        let answers = join_all((0..MANY).map(|_| asking())).await;
        let over = answers.iter().find(|answer| answer.status == 429).unwrap();
        assert_form(over, &json!({"limit": 5, "limit_type": "requests"}));
    }
    // A batch is one request, however many rows it has.
    let row = |number| format!("{{\"to\":\"+4477009{number:05}\",\"body\":\"x\"}}\n");
    let rows: String = (0..MANY).map(row).collect();
    let path = "/api/v1/batches?channel=sms&batch_id=one";
    let uploading = || {
        let request = api.request(Method::POST, path, DEV_KEY);
        let request = request.header("Content-Type", "application/x-ndjson");
        answer(request.body(rows.clone()))
    };
    eventually("it is taken", Duration::from_secs(20), async || {
        let uploaded = uploading().await;
        uploaded.status == 202 && uploaded.body["data"]["accepted"] == MANY
    })
    .await;
    let answers = join_all((0..MANY).map(|_| uploading())).await;
    let is_over = |answer: &&Answer| answer.body["error"]["details"]["limit_type"] == "requests";
    let over = answers.iter().find(is_over).unwrap();
    assert_form(over, &json!({"limit": 5, "limit_type": "requests"}));
    // Whoever has no key uses up nobody's requests.
    let nobody = || answer(api.request(Method::GET, "/api/v1/nothing", "lk_nobody"));
    assert!(
        join_all((0..MANY).map(|_| nobody()))
            .await
            .iter()
            .all(|answer| answer.status == 401)
    );
    api.process.stop().await;
}

/// 300 requests a second that cannot be right use nothing of the budget of 100: 90 a second that are
/// right all pass.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_sent_costs_nothing() {
    let _alone = heavy().await;
    let config = WorkerConfig::new("unused").set("API__REQUESTS_PER_SECOND", 0);
    let api = ApiServer::dev_with(&config).await;
    let (sound, wrong) = (
        message("high"),
        [
            json!({"to": "12", "body": "x"}),
            json!({"to": RECIPIENT}),
            json!({"to": RECIPIENT, "body": "x", "priority": "urgent"}),
        ],
    );
    let mut ticks = interval(Duration::from_secs(1) / 90);
    let (mut sending, mut failing) = (Vec::new(), Vec::new());
    for number in 0..270 {
        ticks.tick().await;
        sending.push(tokio::spawn(api.sending(DEV_KEY, &sound).send()));
        let of_tick = if number % 3 == 0 { 4 } else { 3 };
        for wrong in wrong.iter().cycle().take(of_tick) {
            failing.push(tokio::spawn(api.sending(DEV_KEY, wrong).send()));
        }
    }
    for sent in join_all(sending).await {
        assert_eq!(sent.unwrap().unwrap().status(), 202);
    }
    for failed in join_all(failing).await {
        assert_eq!(failed.unwrap().unwrap().status(), 422);
    }
    api.process.stop().await;
}

/// What makes two requests one, and what does not.
#[tokio::test]
async fn an_idempotency_key_is_of_one_body_however_it_is_written() {
    let api = ApiServer::dev().await;
    let send = async |path: &str, key: &str, body: &str| {
        let request = api
            .request(Method::POST, path, DEV_KEY)
            .body(body.to_owned());
        let request = request.header("Content-Type", "application/json");
        answer(request.header("Idempotency-Key", key)).await
    };
    let sms = "/api/v1/messages/sms";
    let first = r#"{"to":"+447700900123","body":"x","metadata":{"a":1,"b":2}}"#;
    let id = send(sms, "k", first).await.message_id();
    for same in [
        "{ \"metadata\": {\"b\": 2, \"a\": 1},\n\t\"body\": \"\\u0078\", \"to\": \"+447700900123\" }\n",
        r#"{"to":"+447700900123","body":"x","metadata":{"a":1,"b":2},"from":null}"#,
    ] {
        let again = send(sms, "k", same).await;
        assert_eq!(again.message_id(), id);
        assert_eq!(again.header("idempotent-replayed"), "true");
    }
    for other in [
        r#"{"to":"+447700900123","body":"x","metadata":{"a":1,"b":3}}"#,
        r#"{"to":"+447700900123","body":"x","metadata":{"a":1,"b":2},"priority":"low"}"#,
        r#"{"to":"+447700900124","body":"x","metadata":{"a":1,"b":2}}"#,
    ] {
        let refused = send(sms, "k", other).await;
        assert_eq!(
            (refused.status.as_u16(), refused.code()),
            (409, "IDEMPOTENCY_KEY_REUSED")
        );
    }
    let whatsapp = send("/api/v1/messages/whatsapp", "k", first).await;
    assert_ne!(whatsapp.message_id(), id);
    for bad in [
        "",
        " ",
        "two words",
        "schl\u{fc}ssel",
        &"k".repeat(256),
        &"k".repeat(10_240),
    ] {
        let refused = send(sms, bad, first).await;
        assert_eq!(refused.status, 422, "{bad}");
        assert_eq!(refused.body["error"]["details"]["field"], "Idempotency-Key");
    }
    // What was refused has taken no key.
    let wrong = send(sms, "later", r#"{"to":"12","body":"x"}"#).await;
    assert_eq!(wrong.status, 422);
    assert_eq!(send(sms, "later", first).await.status, 202);
    api.process.stop().await;
}
