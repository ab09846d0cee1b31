//! How the lanes stand: one look, and the stream of looks.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::api::{ApiServer, DEV_KEY, answer, issue_key, issue_key_with, message};
use crate::support::events_of::EventStream;
use crate::support::jobs::Offer;
use crate::support::postgres::TestDatabase;
use crate::support::redis::RedisServer;
use crate::support::scene::{ACCOUNT, Scene};
use crate::support::worker::Worker;
use crate::support::{amqp_url, eventually};

const SOON: Duration = Duration::from_secs(10);
const LANES: &str = "/api/v1/lanes";
const EVENTS: &str = "/api/v1/lanes/events";

async fn lanes(api: &ApiServer, key: &str) -> Value {
    let answer = api.get(LANES, key).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.body["data"].clone()
}

/// Waits until a lane's figure, by its place, is this.
async fn shows(api: &ApiServer, key: &str, pointer: &str, expected: impl Into<Value>) {
    let expected = expected.into();
    let is_so = async || lanes(api, key).await.pointer(pointer) == Some(&expected);
    eventually(&format!("{pointer} is {expected}"), SOON, is_so).await;
}

#[tokio::test]
async fn the_last_minute_of_both_lanes_is_told_by_all_processes_together() {
    let (scene, database) = Scene::with_database("lanes").await;
    let scene = scene.set("LANES__BUDGET_PER_SECOND", 5);
    let key = issue_key(&database, ACCOUNT).await;
    let other = issue_key(&database, "other").await;
    let worker = Worker::start(&scene.config).await;
    let [api, second] = [
        ApiServer::start(&scene.config).await,
        ApiServer::start(&scene.config).await,
    ];
    let (mut sent, mut shed) = (0, 0);
    for server in [&api, &second].into_iter().cycle().take(20) {
        let status = server.send(&key, &message("low")).await.status;
        sent += u64::from(status == 202);
        shed += u64::from(status == 429);
    }
    assert_eq!((sent + shed, shed > 0), (20, true));
    assert_eq!(api.send(&other, &message("high")).await.status, 202);
    for server in [&api, &second] {
        shows(server, &key, "/lanes/1/dispatched_last_minute", sent).await;
        shows(server, &key, "/lanes/1/shed_last_minute", shed).await;
        shows(server, &key, "/lanes/1/shed_by_limit/lane", shed).await;
    }
    let view = lanes(&api, &key).await;
    assert_eq!(view["account_id"], ACCOUNT);
    assert_eq!(view["budget_per_second"], 5);
    assert_eq!(view["reserve_per_second"], 1);
    assert_eq!(view["meter"]["mode"], "shared");
    assert_eq!(view["missing"], json!([]));
    let [transactional, marketing] = [&view["lanes"][0], &view["lanes"][1]];
    assert_eq!(transactional["lane"], "transactional");
    assert_eq!(
        (&transactional["limit"], &marketing["limit"]),
        (&json!(5), &json!(4))
    );
    assert_eq!(
        transactional["dispatched_last_minute"], 0,
        "another account's"
    );
    assert_eq!(marketing["latency"]["samples"], sent);
    assert!(marketing["latency"]["p99_ms"].as_f64().unwrap() < 60_000.0);
    shows(&api, &other, "/lanes/0/dispatched_last_minute", 1).await;
    shows(&api, &other, "/lanes/1/shed_last_minute", 0).await;
    for process in [api.process, second.process, worker] {
        process.stop().await;
    }
    scene.end().await;
}

#[tokio::test]
async fn what_workers_shed_hold_and_defer_is_shown_as_well() {
    let (scene, database) = Scene::with_database("lanes-worker").await;
    let scene = scene.set("LANES__BUDGET_PER_SECOND", 5);
    let key = issue_key(&database, ACCOUNT).await;
    let worker = Worker::start(&scene.config).await;
    let api = ApiServer::start(&scene.config).await;
    let publisher = scene.publisher().await;
    let jobs = Offer::many(40, "j", |id| Offer::marketing(ACCOUNT, id).queued_now());
    publisher.publish_all(&jobs).await;
    let is_shed = async || {
        let view = lanes(&api, &key).await;
        let lane = &view["lanes"][1];
        lane["shed_last_minute"].as_u64() > Some(0)
            && lane["queued_all_accounts"].as_u64() > Some(0)
    };
    eventually("sheds and the delay queue are shown", SOON, is_shed).await;
    let sent = async || lanes(&api, &key).await["lanes"][1]["dispatched_last_minute"] == 40;
    eventually("all are sent at last", Duration::from_secs(30), sent).await;
    api.process.stop().await;
    worker.stop().await;
    scene.end().await;
}

#[tokio::test]
async fn what_waits_and_what_is_paused_is_shown_to_its_own_account_alone() {
    let (scene, database) = Scene::with_database("lanes-held").await;
    let key = issue_key(&database, ACCOUNT).await;
    let other = issue_key(&database, "other").await;
    let api = ApiServer::start(&scene.config).await;
    database
        .execute(
            "INSERT INTO holds (account_id, kind, target, state, reason)
             VALUES ('acme', 'campaign', 'spring', 'paused', 'wrong prices'),
                ('acme', 'batch', 'b-1', 'cancelled', NULL);
             INSERT INTO waiting
                (account_id, id, lane, reason, due_at, job, attempts, sheds, enqueued_ms)
             SELECT 'acme', 'w-' || n, 'marketing', 'quiet_hours', now() + interval '1 hour', '{}', 0, 0,
                (extract(epoch FROM now()) * 1000)::bigint - 90000 FROM generate_series(1, 3) AS n;
             INSERT INTO waiting (account_id, id, lane, reason, due_at, job, attempts, sheds)
             VALUES ('acme', 'w-4', 'marketing', 'paused', NULL, '{}', 0, 0)",
        )
        .await;
    shows(&api, &key, "/lanes/1/waiting", 4).await;
    let view = lanes(&api, &key).await;
    assert_eq!(view["lanes"][1]["queued"], 4);
    assert_eq!(view["lanes"][0]["queued"], 0);
    let oldest = view["lanes"][1]["oldest_seconds"].as_f64().unwrap();
    assert!((90.0..120.0).contains(&oldest), "{oldest}");
    let mut paused: Vec<_> = view["paused"].as_array().unwrap().iter().collect();
    paused.sort_by_key(|hold| hold["kind"].as_str());
    assert_eq!(
        (&paused[0]["id"], &paused[0]["state"]),
        (&json!("b-1"), &json!("cancelled"))
    );
    assert_eq!(paused[1]["reason"], "wrong prices");
    let others = lanes(&api, &other).await;
    assert_eq!(
        (&others["paused"], &others["lanes"][1]["waiting"]),
        (&json!([]), &json!(0))
    );
    api.process.stop().await;
    scene.end().await;
}

#[tokio::test]
async fn what_cannot_be_asked_is_null_and_named_and_costs_no_more_than_its_time() {
    let mut redis = RedisServer::start().await;
    let database = TestDatabase::create().await;
    let scene = Scene::on("lanes-away", amqp_url(), redis.url()).await;
    let scene = scene.recorded_at(database.url());
    let key = issue_key(&database, ACCOUNT).await;
    let api = ApiServer::start(&scene.config).await;
    let is_away = async || {
        let asked = Instant::now();
        let view = lanes(&api, &key).await;
        assert!(
            asked.elapsed() < Duration::from_millis(2_500),
            "{:?}",
            asked.elapsed()
        );
        let nulls =
            ["used", "dispatched_last_minute", "queued"].map(|name| &view["lanes"][0][name]);
        view["missing"] == json!(["redis"])
            && view["meter"]["mode"] == "local"
            && nulls.iter().all(|value| value.is_null())
    };
    let is_back = async || {
        let view = lanes(&api, &key).await;
        view["missing"] == json!([]) && view["meter"]["mode"] == "shared"
    };
    eventually("it is there", SOON, is_back).await;
    redis.freeze();
    eventually("it says nothing", SOON, is_away).await;
    redis.thaw();
    eventually("it is back", SOON, is_back).await;
    redis.cli(&["CONFIG", "SET", "maxmemory", "1"]).await;
    let is_local = async || lanes(&api, &key).await["meter"]["mode"] == "local";
    eventually("it takes no writes", SOON, is_local).await;
    redis.cli(&["CONFIG", "SET", "maxmemory", "0"]).await;
    eventually("it takes writes again", SOON, is_back).await;
    redis.stop().await;
    eventually("it is gone", SOON, is_away).await;
    api.process.stop().await;
    scene.end().await;
}

#[tokio::test]
async fn each_route_asks_for_its_scope() {
    let (scene, database) = Scene::with_database("lanes-scopes").await;
    let api = ApiServer::start(&scene.config).await;
    let mut keys = Vec::new();
    for scope in ["send", "read", "admin"] {
        keys.push(issue_key_with(&database, ACCOUNT, &[scope], "api").await);
    }
    let known = async || api.get(LANES, &keys[2]).await.status == 403;
    eventually("the keys are known", SOON, known).await;
    for (path, allowed) in [(LANES, 1), (EVENTS, 2)] {
        for (place, key) in keys
            .iter()
            .enumerate()
            .filter(|(place, _)| *place != allowed)
        {
            let answer = api.get(path, key).await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{path} {place}");
        }
        let nobody = answer(api.request(Method::GET, path, "nonsense")).await;
        assert_eq!(nobody.code(), "INVALID_API_KEY");
    }
    EventStream::open(&api.url(EVENTS), &keys[2]).await.unwrap();
    for path in ["/page/events", "/page/nothing"] {
        let request = api.request(Method::GET, path, &keys[2]);
        let answer = answer(request.header("Sec-Fetch-Site", "same-origin")).await;
        assert_eq!(answer.code(), "NOT_FOUND", "{path}");
    }
    api.process.stop().await;
    scene.end().await;
}

#[tokio::test]
async fn a_stream_begins_with_a_minute_and_goes_on_by_the_second() {
    let server = ApiServer::dev().await;
    let mut stream = EventStream::open(&server.url(EVENTS), DEV_KEY)
        .await
        .unwrap();
    let first = stream.next().await;
    assert_eq!(first.name, "lanes");
    assert_eq!(first.data["seconds"].as_array().unwrap().len(), 60);
    assert_eq!(server.send(DEV_KEY, &message("high")).await.status, 202);
    let (mut seen, started) = (Vec::new(), Instant::now());
    while seen.is_empty() {
        let event = stream.next().await;
        let seconds = event.data["seconds"].as_array().unwrap().clone();
        assert_eq!(seconds.len(), 3);
        seen.extend(
            seconds
                .into_iter()
                .filter(|one| one["transactional"]["dispatched"] == 1),
        );
        assert!(started.elapsed() < SOON);
    }
    assert!(seen[0]["transactional"]["p99_ms"].is_number());
    let asked = Instant::now();
    server.process.sigterm();
    let end = stream.until("end").await;
    assert_eq!(end.data["reason"], "stopping");
    assert!(
        asked.elapsed() < Duration::from_secs(3),
        "{:?}",
        asked.elapsed()
    );
    server.process.stop().await;
}

#[tokio::test]
async fn a_stream_ends_when_its_key_is_revoked() {
    let (scene, database) = Scene::with_database("lanes-revoked").await;
    let [key, other] = [
        issue_key(&database, ACCOUNT).await,
        issue_key(&database, ACCOUNT).await,
    ];
    let api = ApiServer::start(&scene.config).await;
    let known = async || api.get(LANES, &key).await.status == 200;
    eventually("the key is known", SOON, known).await;
    let mut stream = EventStream::open(&api.url(EVENTS), &key).await.unwrap();
    let mut of_other = EventStream::open(&api.url(EVENTS), &other).await.unwrap();
    stream.next().await;
    let id = key.split('_').nth(1).unwrap();
    let revoke = format!("UPDATE api_keys SET revoked_at = now() WHERE key_id = '{id}'");
    database.execute(&revoke).await;
    let revoked = Instant::now();
    let end = stream.until("end").await;
    assert_eq!(end.data["reason"], "key_revoked");
    assert!(
        revoked.elapsed() < Duration::from_secs(3),
        "{:?}",
        revoked.elapsed()
    );
    assert_eq!(of_other.next().await.name, "lanes");
    api.process.stop().await;
    scene.end().await;
}

#[tokio::test]
async fn a_key_has_only_so_many_streams_and_a_closed_one_makes_room() {
    let server = ApiServer::dev().await;
    let mut open = Vec::new();
    for _ in 0..8 {
        open.push(
            EventStream::open(&server.url(EVENTS), DEV_KEY)
                .await
                .unwrap(),
        );
    }
    let full = EventStream::open(&server.url(EVENTS), DEV_KEY)
        .await
        .err()
        .unwrap();
    assert_eq!(full, 429);
    open.pop();
    let room = async || {
        EventStream::open(&server.url(EVENTS), DEV_KEY)
            .await
            .is_ok()
    };
    eventually("there is room again", SOON, room).await;
    server.process.stop().await;
}

#[tokio::test]
async fn dev_answers_only_to_names_of_this_machine_and_its_page_only_to_itself() {
    let server = ApiServer::dev().await;
    let ask = async |path: &str, host: &str, site: &str| {
        let client = crate::support::api::client();
        let request = client.get(server.url(path)).header("Host", host);
        let request = request.header("X-API-Key", DEV_KEY);
        let answer = request.header("Sec-Fetch-Site", site).send().await.unwrap();
        answer.status().as_u16()
    };
    assert_eq!(ask("/page/events", "localhost", "same-origin").await, 200);
    assert_eq!(ask("/page/events", "localhost", "cross-site").await, 404);
    for path in ["/", LANES, "/page/events", "/docs"] {
        assert_eq!(
            ask(path, "evil.example", "same-origin").await,
            403,
            "{path}"
        );
    }
    assert_eq!(ask(LANES, "[::1]:80", "cross-site").await, 200);
    server.process.stop().await;
}
