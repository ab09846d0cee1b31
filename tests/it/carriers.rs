//! Carriers: what they are sent, and what their answers and silences mean.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::routing::post;
use jiff::Timestamp;
use lanekeeper::carrier::AnyCarrier;
use lanekeeper::dispatch::ports::{Accepted, Carrier as _, Clock, SendError, SendVerdict};
use lanekeeper::domain::{AccountId, Channel, Job, JobHead, JobId, Lane, LaneRule, Payload};
use lanekeeper::settings::Settings;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

struct WallClock;

impl Clock for WallClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

const BODY: &str = r#"{"id":"j-1","to":"+44 7700 900123","body":"code \u0031","content":{"a": [1,2]},
    "metadata":{"x":1.50,"traffic_lane":"marketing"},"unknown":true}"#;

fn job(id: &str) -> Job {
    Job {
        head: JobHead {
            id: JobId::parse(id).unwrap(),
            account: AccountId::parse("Acme").unwrap(),
            channel: "sms".into(),
            lane: Lane::Marketing,
            lane_rule: LaneRule::TrafficLane,
            origin: None,
            enqueued_at: None,
            campaign_id: None,
            journey_id: None,
            batch_id: None,
        },
        channel: Channel::Sms,
        to: "+447700900123".into(),
        from: Some("ACME".into()),
        service_id: None,
        category: None,
        recipient_zone: None,
        not_before: None,
        expires_at: None,
        payload: Payload::new(BODY.as_bytes()),
    }
}

/// The default carrier with these settings, by the names after `LANEKEEPER__CARRIERS__DEFAULT__`.
fn carrier(settings: &[(&str, &str)]) -> AnyCarrier {
    carrier_with_seed(settings, 1)
}

fn carrier_with_seed(settings: &[(&str, &str)], seed: u64) -> AnyCarrier {
    let environment = settings
        .iter()
        .map(|(key, value)| (format!("LANEKEEPER__CARRIERS__DEFAULT__{key}"), *value));
    let settings = Settings::load(None, environment).unwrap();
    let (name, carrier) = settings.carriers.iter().next().unwrap();
    let cap = settings.jobs.retry_after_cap;
    let random = fastrand::Rng::with_seed(seed);
    AnyCarrier::open(name, carrier, cap, Arc::new(WallClock), random).unwrap()
}

fn http(url: &str, more: &[(&str, &str)]) -> AnyCarrier {
    let mut settings = vec![("KIND", "http"), ("URL", url)];
    settings.extend_from_slice(more);
    carrier(&settings)
}

type Received = Arc<Mutex<Vec<(HeaderMap, Bytes)>>>;

/// A server that gives every request the same answer.
async fn answering(
    answer: impl IntoResponse + Clone + Send + Sync + 'static,
) -> (String, Received) {
    let received = Received::default();
    let handler = move |State(received): State<Received>, headers: HeaderMap, body: Bytes| async move {
        received.lock().unwrap().push((headers, body));
        answer.clone().into_response()
    };
    let router = Router::new()
        .route("/send", post(handler))
        .with_state(Arc::clone(&received));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/send", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, received)
}

/// A server that reads a request and then writes these bytes, or says nothing for ever.
async fn raw(answer: Option<&'static [u8]>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/send", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut buffer = [0; 4096];
                let _ = stream.read(&mut buffer).await;
                match answer {
                    Some(bytes) => stream.write_all(bytes).await.unwrap(),
                    None => std::future::pending().await,
                }
            });
        }
    });
    url
}

async fn error(carrier: &AnyCarrier) -> SendError {
    carrier.send(&job("j-1"), 1).await.unwrap_err()
}

#[tokio::test]
async fn the_request_is_what_carriers_were_promised() {
    let (url, received) = answering(r#"{"id":"ref-7"}"#).await;
    let carrier = http(&url, &[("AUTH_TOKEN", "tok en")]);
    let accepted = carrier.send(&job("j-1"), 3).await.unwrap();
    assert_eq!(accepted.carrier_ref.as_deref(), Some("ref-7"));
    let (headers, body) = received.lock().unwrap().pop().unwrap();
    assert_eq!(headers["idempotency-key"], "Acme:j-1");
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(headers["authorization"], "Bearer tok en");
    assert_eq!(
        std::str::from_utf8(&body).unwrap(),
        concat!(
            r#"{"id":"j-1","account_id":"Acme","lane":"marketing","channel":"sms","to":"+447700900123","#,
            r#""from":"ACME","service_id":null,"body":"code \u0031","content":{"a": [1,2]},"#,
            r#""metadata":{"x":1.50,"traffic_lane":"marketing"},"attempt":3}"#
        )
    );
}

#[tokio::test]
async fn a_token_can_have_a_header_of_its_own() {
    let (url, received) = answering(StatusCode::NO_CONTENT).await;
    let carrier = http(
        &url,
        &[("AUTH_TOKEN", "secret"), ("AUTH_HEADER", "X-Api-Key")],
    );
    carrier.send(&job("j-1"), 1).await.unwrap();
    let (headers, _) = received.lock().unwrap().pop().unwrap();
    assert_eq!(headers["x-api-key"], "secret");
    assert!(!headers.contains_key("authorization"));
}

#[tokio::test]
async fn the_reference_may_be_in_a_header_and_may_be_missing() {
    let (url, _) = answering(([("x-message-id", "h-1")], "ok")).await;
    let accepted = http(&url, &[]).send(&job("j-1"), 1).await.unwrap();
    assert_eq!(accepted.carrier_ref.as_deref(), Some("h-1"));
    let (url, _) = answering("x".repeat(1_000_000)).await;
    let accepted = http(&url, &[]).send(&job("j-1"), 1).await;
    assert_eq!(accepted, Ok(Accepted::default()));
}

#[tokio::test]
async fn statuses_mean_what_the_contract_says() {
    let cases = [
        (400, SendVerdict::Rejected),
        (401, SendVerdict::Rejected),
        (404, SendVerdict::Rejected),
        (408, SendVerdict::Unknown),
        (425, SendVerdict::Unknown),
        (429, SendVerdict::Throttled),
        (500, SendVerdict::Unknown),
        (502, SendVerdict::Unknown),
        (503, SendVerdict::NotSent),
        (302, SendVerdict::NotSent),
    ];
    for (code, verdict) in cases {
        let status = StatusCode::from_u16(code).unwrap();
        let (url, received) = answering((status, [("location", "/elsewhere")], "S3NTINEL")).await;
        let error = error(&http(&url, &[])).await;
        assert_eq!(error.verdict, verdict, "{code}");
        assert_eq!(
            error.to_string(),
            format!("the carrier answered with status {code}")
        );
        assert_eq!(received.lock().unwrap().len(), 1, "one try is one request");
    }
}

#[tokio::test]
async fn retry_after_is_honoured_and_capped() {
    let soon = Timestamp::now() + Duration::from_secs(60);
    let date = soon.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    for (header, expected) in [
        ("7".to_owned(), 7..=7),
        ("90000".to_owned(), 300..=300),
        (date, 57..=60),
    ] {
        let (url, _) = answering((StatusCode::TOO_MANY_REQUESTS, [("retry-after", header)])).await;
        let wait = error(&http(&url, &[])).await.retry_after.unwrap();
        assert!(expected.contains(&wait.as_secs()), "{wait:?}");
    }
    for header in ["soon", "-1", "0"] {
        let (url, _) =
            answering((StatusCode::SERVICE_UNAVAILABLE, [("retry-after", header)])).await;
        assert_eq!(error(&http(&url, &[])).await.retry_after, None, "{header}");
    }
}

#[tokio::test]
async fn a_carrier_that_is_not_there_has_not_got_the_job() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = error(&http(
        &format!("http://user:S3NTINEL@{address}/?key=S3NTINEL"),
        &[],
    ))
    .await;
    assert_eq!(error.verdict, SendVerdict::NotSent);
    assert_eq!(
        error.to_string(),
        "could not connect to the carrier: connection refused"
    );
}

#[tokio::test]
async fn a_silent_carrier_may_have_got_the_job() {
    let url = raw(None).await;
    let started = Instant::now();
    let error = error(&http(&url, &[("TIMEOUT_MS", "100")])).await;
    assert_eq!(error.verdict, SendVerdict::Unknown);
    assert_eq!(error.to_string(), "the carrier did not answer in time");
    assert!(started.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn a_connection_that_breaks_may_have_carried_the_job() {
    for answer in [&b""[..], b"HTTP/1.1 2", b"SSH-2.0-nonsense\r\n"] {
        let error = error(&http(&raw(Some(answer)).await, &[])).await;
        assert_eq!(error.verdict, SendVerdict::Unknown);
        assert_eq!(
            error.to_string(),
            "the connection to the carrier broke before its answer"
        );
    }
}

#[tokio::test]
async fn an_acceptance_stands_although_the_rest_of_the_answer_is_lost() {
    for answer in [
        &b"HTTP/1.1 202 Accepted\r\ncontent-length: 100\r\n\r\n{\"id\""[..],
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    ] {
        let accepted = http(&raw(Some(answer)).await, &[])
            .send(&job("j-1"), 1)
            .await;
        assert_eq!(accepted, Ok(Accepted::default()));
    }
}

#[tokio::test]
async fn connections_are_kept() {
    let accepted = Arc::new(Mutex::new(HashSet::new()));
    let seen = Arc::clone(&accepted);
    let router = Router::new().route(
        "/send",
        post(
            move |peer: axum::extract::ConnectInfo<std::net::SocketAddr>| async move {
                seen.lock().unwrap().insert(peer.0);
                (StatusCode::TOO_MANY_REQUESTS, "slow down")
            },
        ),
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/send", listener.local_addr().unwrap());
    let service = router.into_make_service_with_connect_info::<std::net::SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await });
    let carrier = http(&url, &[]);
    for _ in 0..20 {
        let _ = carrier.send(&job("j-1"), 1).await;
    }
    assert_eq!(accepted.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn the_sandbox_fails_and_throttles_the_share_it_was_told_to() {
    let settings = [
        ("SANDBOX_FAIL_PERCENT", "20"),
        ("SANDBOX_THROTTLE_PERCENT", "30"),
    ];
    let run = async |seed| {
        let carrier = carrier_with_seed(&settings, seed);
        let mut ends = Vec::new();
        for _ in 0..2_000 {
            let end = carrier.send(&job("j-1"), 1).await;
            ends.push(end.map_err(|error| (error.verdict, error.retry_after)));
        }
        ends
    };
    let ends = run(7).await;
    let share = |wanted: &Result<Accepted, _>| ends.iter().filter(|end| *end == wanted).count();
    assert!((300..500).contains(&share(&Err((SendVerdict::Unknown, None)))));
    let throttled = Err((SendVerdict::Throttled, Some(Duration::from_secs(1))));
    assert!((500..700).contains(&share(&throttled)));
    assert!((850..1_150).contains(&share(&Ok(Accepted::default()))));
    assert_eq!(run(7).await, ends, "the same seed gives the same ends");
    assert_ne!(run(8).await, ends);
}

#[tokio::test(start_paused = true)]
async fn the_sandbox_takes_its_time_but_no_longer_than_allowed() {
    let started = tokio::time::Instant::now();
    let slow = carrier(&[("SANDBOX_LATENCY_MS", "300")]);
    slow.send(&job("j-1"), 1).await.unwrap();
    assert_eq!(started.elapsed().as_millis(), 300);
    let too_slow = carrier(&[("SANDBOX_LATENCY_MS", "300"), ("TIMEOUT_MS", "200")]);
    let end = too_slow.send(&job("j-1"), 1).await;
    assert_eq!(end.unwrap_err().verdict, SendVerdict::Unknown);
    assert_eq!(started.elapsed().as_millis(), 500);
}

fn lines(path: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test]
async fn the_record_has_what_was_accepted_and_nothing_private() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let before = Timestamp::now().as_microsecond();
    carrier(&[("SANDBOX_RECORD_FILE", path)])
        .send(&job("j-1"), 2)
        .await
        .unwrap();
    let failing = carrier(&[
        ("SANDBOX_RECORD_FILE", path),
        ("SANDBOX_FAIL_PERCENT", "100"),
    ]);
    failing.send(&job("j-2"), 1).await.unwrap_err();
    let lines = lines(file.path());
    let at = lines[0]["at_us"].as_i64().unwrap();
    assert!((before..=Timestamp::now().as_microsecond()).contains(&at));
    let expected = serde_json::json!([{
        "at_us": at, "id": "j-1", "account_id": "Acme", "lane": "marketing", "channel": "sms", "attempt": 2,
    }]);
    assert_eq!(serde_json::Value::from(lines), expected);
}

/// Several workers are several openings of the file: appends of all of them must stay whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_appenders_of_one_record_write_whole_lines() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for writer in 0..4 {
        let carrier = Arc::new(carrier(&[("SANDBOX_RECORD_FILE", path)]));
        for task in 0..4 {
            let carrier = Arc::clone(&carrier);
            tasks.spawn(async move {
                for turn in 0..250 {
                    carrier
                        .send(&job(&format!("{writer}.{task}.{turn}")), 1)
                        .await
                        .unwrap();
                }
            });
        }
    }
    tasks.join_all().await;
    let ids: HashSet<_> = lines(file.path())
        .iter()
        .map(|line| line["id"].to_string())
        .collect();
    assert_eq!(ids.len(), 4_000);
}
