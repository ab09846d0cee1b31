//! What must never be told: passwords, keys, bodies and recipients, in logs, metrics and answers.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use url::Url;

use super::{SENTINEL, assert_silent};
use crate::support::api::{ApiServer, answer, issue_key, message};
use crate::support::postgres::TestDatabase;
use crate::support::scene::{ACCOUNT, Scene};
use crate::support::worker::{Worker, WorkerConfig};
use crate::support::{eventually, unique_prefix};

const SOON: Duration = Duration::from_secs(15);

fn with_password(url: &str, user: &str) -> String {
    let mut url = Url::parse(url).unwrap();
    url.set_username(user).unwrap();
    url.set_password(Some(SENTINEL)).unwrap();
    url.into()
}

/// Services that refuse the password, or are not there, or whose address is nonsense: what clients and
/// operators see of an API server does not hold the password.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_password_of_a_service_is_told() {
    let database = TestDatabase::create().await;
    let key = issue_key(&database, ACCOUNT).await;
    let sound = WorkerConfig::new(&unique_prefix("api-password"))
        .set("DATABASE__URL", database.url())
        .set("LOG__LEVEL", "trace");
    for (name, user, scheme) in [
        ("AMQP__URL", "guest", "amqp"),
        ("REDIS__URL", "default", "redis"),
        ("DATABASE__URL", "lanekeeper", "postgres"),
    ] {
        let wrong = match name {
            "AMQP__URL" => with_password(&crate::support::amqp_url(), user),
            "REDIS__URL" => with_password(&crate::support::redis_url(), user),
            _ => with_password(database.url(), user),
        };
        let away = format!("{scheme}://{user}:{SENTINEL}@127.0.0.1:1/0");
        for url in [wrong, away] {
            assert_not_told(&sound.clone().set(name, &*url), &key).await;
        }
        let nonsense = format!("{scheme}://{user}:{SENTINEL}#@127.0.0.1");
        let mut api = ApiServer::spawn("api", &sound.clone().set(name, &*nonsense));
        assert!(!api.process.wait_exit(SOON).await.success());
        let said = api.process.log();
        assert!(!said.is_empty() && !said.contains(SENTINEL), "{said}");
    }
}

async fn assert_not_told(config: &WorkerConfig, key: &str) {
    let mut api = ApiServer::spawn("api", config);
    let address = api.address.clone();
    api.process.await_listening(&address, SOON).await;
    let body = message("high");
    for _ in 0..3 {
        let sent = api.send(key, &body).await;
        assert!([202, 503].contains(&sent.status.as_u16()), "{sent:?}");
        assert!(!format!("{sent:?}").contains(SENTINEL), "{sent:?}");
    }
    for path in ["/readyz", "/healthz", "/metrics"] {
        let told = api.process.ops(path).await;
        assert!(!told.contains(SENTINEL), "{told}");
    }
    let log = api.process.log();
    assert!(!log.is_empty() && !log.contains(SENTINEL), "{log}");
    api.process.kill().await;
}

/// At the finest level neither API nor worker writes down a key, a body or a recipient, and the key
/// stays with the API.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_bodies_and_recipients_are_logged_nowhere() {
    let (scene, database) = Scene::with_database("api-secrets").await;
    let key = issue_key(&database, ACCOUNT).await;
    let scene = scene.set("LOG__LEVEL", "trace");
    let worker = Worker::start(&scene.config).await;
    let api = ApiServer::start(&scene.config).await;
    let number = "+447700900987";
    let secret = json!({"to": number, "body": SENTINEL, "metadata": {"note": SENTINEL},
        "content": {SENTINEL: SENTINEL}, "priority": "high"});
    let sent = answer(api.sending(&key, &secret).header("Idempotency-Key", "once")).await;
    sent.message_id();
    scene.stub.wait_for(1, SOON).await;
    // Refused ones, too.
    for wrong in [
        json!({"to": SENTINEL, "body": SENTINEL}),
        json!({"to": number, "body": [SENTINEL]}),
        json!({"to": number, "body": "x", SENTINEL: SENTINEL}),
        json!({"to": number, "body": "x", "priority": SENTINEL}),
    ] {
        assert_eq!(api.send(&key, &wrong).await.status, 422);
    }
    let wrong_key = key.replace(key.rsplit('_').next().unwrap(), SENTINEL);
    assert_eq!(api.send(&wrong_key, &message("high")).await.status, 401);
    let query = format!("/api/v1/messages/sms?key={key}&{SENTINEL}={SENTINEL}");
    answer(api.request(Method::POST, &query, &key).json(&secret)).await;
    let logs = api.process.errors() + &worker.errors();
    assert_silent(&logs);
    assert!(!logs.contains(key.rsplit('_').next().unwrap()));
    assert!(!logs.contains(&number[1..]), "{logs}");
    assert!(!api.process.ops("/metrics").await.contains(SENTINEL));
    api.process.stop().await;
    worker.stop().await;
    scene.end().await;
}

/// One event is one line, in both forms, whatever a client puts into its request.
#[tokio::test]
async fn no_request_forges_a_line_of_the_log() {
    let forged = "\u{1b}[2J\r\n2026-01-01T00:00:00Z ERROR lanekeeper: FORGED\u{85}\u{2028}";
    for format in ["json", "text"] {
        let config = WorkerConfig::new("unused")
            .set("LOG__LEVEL", "trace")
            .set("LOG__FORMAT", format);
        let api = ApiServer::dev_with(&config).await;
        forge(&api, forged).await;
        let answered = async || api.process.errors().matches("answered").count() >= 5;
        eventually("it is logged", SOON, answered).await;
        let log = api.process.errors();
        assert!(
            !log.contains(['\u{1b}', '\r', '\u{85}', '\u{2028}']),
            "{log}"
        );
        assert!(
            log.lines()
                .all(|line| !line.starts_with("2026-01-01T00:00:00Z")),
            "{log}"
        );
        api.process.stop().await;
    }
}

/// In a path, a query, a header, a field's name and a value; raw where HTTP lets it pass, else encoded.
async fn forge(api: &ApiServer, forged: &str) {
    let encoded: String = url::form_urlencoded::byte_serialize(forged.as_bytes()).collect();
    let encoded = encoded.replace('+', "%20");
    let key = crate::support::api::DEV_KEY;
    for path in [
        format!("/api/v1/messages/{encoded}"),
        format!("/api/v1/{encoded}"),
        format!("/{encoded}?{encoded}={encoded}"),
    ] {
        let request = api.request(Method::POST, &path, key);
        answer(request.json(&message("high"))).await;
    }
    let named = json!({"to": forged, "from": forged, "body": forged, forged: forged});
    assert_eq!(api.send(key, &named).await.status, 422);
    let valued = json!({"to": "+447700900123", "body": forged, "campaign_id": forged,
        "priority": forged, "recipient_timezone": forged});
    assert_eq!(api.send(key, &valued).await.status, 422);
    let agent = api
        .sending(key, &message("high"))
        .header("User-Agent", "\u{9b}2J\tFORGED");
    assert_eq!(answer(agent).await.status, 202);
}
