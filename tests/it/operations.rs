//! Operations that need no whole worker: the operators' server, metrics, `check`, what is logged.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::net::SocketAddr;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lanekeeper::dispatch::ports::WaitReason;
use lanekeeper::domain::{Lane, Limit, MeterMode, Outcome};
use lanekeeper::meter::StoreError;
use lanekeeper::ops::server::MAX_CONNECTIONS;
use lanekeeper::ops::{LaneReadiness, Metrics, Readiness, serve};
use lanekeeper::telemetry::{DuplicateKind, Telemetry, all_outcomes};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::support::rabbit::connection;
use crate::support::unique_prefix;

const PROGRAM: &str = env!("CARGO_BIN_EXE_lanekeeper");

struct Server {
    address: SocketAddr,
    telemetry: Telemetry,
    ready: Arc<AtomicBool>,
    stop: CancellationToken,
}

async fn server() -> Server {
    let metrics = Metrics::new().unwrap();
    let telemetry = Telemetry::new(&metrics.meter());
    metrics.observe(&telemetry);
    let ready = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&ready);
    let readiness = Arc::new(move || {
        let marketing = flag.load(Ordering::SeqCst);
        Readiness {
            lanes: vec![
                LaneReadiness {
                    lane: "transactional",
                    ready: true,
                    reason: None,
                },
                LaneReadiness {
                    lane: "marketing",
                    ready: marketing,
                    reason: (!marketing).then(|| "no consumer".to_owned()),
                },
            ],
        }
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    tokio::spawn(serve(listener, metrics, readiness, stop.clone()));
    Server {
        address,
        telemetry,
        ready,
        stop,
    }
}

impl Server {
    async fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    async fn get(&self, path: &str) -> (String, String) {
        let answer = self
            .ask(&format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n"))
            .await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap();
        (status.to_owned(), body.to_owned())
    }
}

#[tokio::test]
async fn health_and_readiness_say_what_is_so() {
    let server = server().await;
    assert_eq!(
        server.get("/healthz").await,
        ("200".into(), r#"{"alive":true}"#.into())
    );
    let not_ready = concat!(
        r#"{"ready":false,"lanes":[{"lane":"transactional","ready":true},"#,
        r#"{"lane":"marketing","ready":false,"reason":"no consumer"}]}"#
    );
    assert_eq!(
        server.get("/readyz").await,
        ("503".into(), not_ready.into())
    );
    server.ready.store(true, Ordering::SeqCst);
    let ready = r#"{"ready":true,"lanes":[{"lane":"transactional","ready":true},{"lane":"marketing","ready":true}]}"#;
    assert_eq!(server.get("/readyz").await, ("200".into(), ready.into()));
}

#[tokio::test]
async fn other_paths_and_methods_are_answered_in_json() {
    let server = server().await;
    let (status, body) = server.get("/").await;
    assert_eq!(status, "404");
    assert!(serde_json::from_str::<serde_json::Value>(&body).unwrap()["error"].is_string());
    let answer = server
        .ask("POST /metrics HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n")
        .await;
    assert!(answer.starts_with("HTTP/1.1 405"), "{answer}");
    assert!(
        answer.contains("application/json") && answer.contains("allow: GET,HEAD"),
        "{answer}"
    );
}

#[tokio::test]
async fn silent_connections_do_not_keep_health_from_being_answered() {
    let server = server().await;
    let mut silent = Vec::new();
    for _ in 0..MAX_CONNECTIONS * 3 {
        silent.push(TcpStream::connect(server.address).await.unwrap());
    }
    let asked = Instant::now();
    assert_eq!(server.get("/healthz").await.0, "200");
    assert!(asked.elapsed() < Duration::from_secs(2));
    // The oldest was closed to make room.
    let mut byte = [0];
    let closed = tokio::time::timeout(Duration::from_secs(2), silent[0].read(&mut byte)).await;
    assert!(matches!(closed, Ok(Ok(0) | Err(_))), "{closed:?}");
}

#[tokio::test]
async fn a_head_that_never_ends_is_cut_off() {
    let server = server().await;
    let long = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "x".repeat(100_000));
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let _ = stream.write_all(long.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP/1.1 2"));
    assert_eq!(server.get("/healthz").await.0, "200");
}

#[tokio::test]
async fn the_server_stops_when_told() {
    let server = server().await;
    server.stop.cancel();
    let gone = async {
        while TcpStream::connect(server.address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), gone)
        .await
        .unwrap();
}

/// The counters and gauges of an exposition, by name with labels.
fn samples(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').unwrap();
            (name.to_owned(), value.to_owned())
        })
        .collect()
}

#[tokio::test]
async fn a_fresh_process_shows_every_series_at_zero() {
    let server = server().await;
    let (_, text) = server.get("/metrics").await;
    let mut expected = BTreeMap::new();
    let mut zero = |name: String| expected.insert(name, "0".to_owned());
    for lane in ["marketing", "transactional"] {
        for family in [
            "lanekeeper_deliveries_total",
            "lanekeeper_retries_total",
            "lanekeeper_parks_total",
            "lanekeeper_caps_unchecked_total",
            "lanekeeper_released_total",
            "lanekeeper_waiting",
            "lanekeeper_in_flight",
            "lanekeeper_oldest_seconds",
            "lanekeeper_splits_total",
            "lanekeeper_splits_declined_total",
            "lanekeeper_merges_total",
            "lanekeeper_hot_queues",
        ] {
            zero(format!("{family}{{lane=\"{lane}\"}}"));
        }
        for limit in ["lane", "number", "service", "claim"] {
            zero(format!(
                "lanekeeper_sheds_total{{lane=\"{lane}\",limit=\"{limit}\"}}"
            ));
        }
        for reason in WaitReason::ALL {
            let reason = reason.as_str();
            zero(format!(
                "lanekeeper_waits_total{{lane=\"{lane}\",reason=\"{reason}\"}}"
            ));
        }
        for why in StoreError::ALL {
            let why = why.as_str();
            zero(format!(
                "devotel_messaging_rate_limiter_fallback_total{{lane=\"{lane}\",reason=\"{why}\"}}"
            ));
        }
        for outcome in all_outcomes() {
            let (outcome, reason) = (outcome.as_str(), outcome.reason());
            zero(format!(
                "lanekeeper_outcomes_total{{lane=\"{lane}\",outcome=\"{outcome}\",reason=\"{reason}\"}}"
            ));
        }
    }
    for kind in ["prevented", "possible"] {
        zero(format!("lanekeeper_duplicates_total{{kind=\"{kind}\"}}"));
    }
    for field in ["traffic_lane", "priority", "origin"] {
        zero(format!(
            "lanekeeper_unrecognised_hints_total{{field=\"{field}\"}}"
        ));
    }
    for cause in ["broker", "database"] {
        zero(format!(
            "lanekeeper_release_failures_total{{cause=\"{cause}\"}}"
        ));
    }
    for name in [
        "lanekeeper_publish_failures_total",
        "lanekeeper_ledger_lost_total",
        "lanekeeper_ledger_behind",
        "lanekeeper_ledger_waiting",
        "lanekeeper_database_away",
    ] {
        zero(name.to_owned());
    }
    zero("lanekeeper_meter_mode{mode=\"local\"}".to_owned());
    expected.insert(
        "lanekeeper_meter_mode{mode=\"shared\"}".to_owned(),
        "1".to_owned(),
    );
    assert_eq!(samples(&text), expected);
}

#[tokio::test]
async fn what_happened_is_shown_exactly() {
    let server = server().await;
    let telemetry = &server.telemetry;
    telemetry.delivered(Lane::Marketing, 3);
    telemetry.settled(Lane::Transactional, Outcome::Dispatched);
    telemetry.shed(Lane::Marketing, Limit::Lane);
    telemetry.fell_open(Lane::Transactional, StoreError::TimedOut, 5);
    telemetry.duplicate(DuplicateKind::Possible);
    telemetry.in_flight(Lane::Transactional, 2);
    telemetry.oldest(Lane::Marketing, Duration::from_millis(1_500));
    telemetry.meter_mode(MeterMode::Local);
    telemetry.waited(Lane::Transactional, Duration::from_millis(3));
    telemetry.called(&"default".into(), Duration::from_millis(300));
    telemetry.carrier_opened(&"default".into());
    telemetry.carrier_changed(&"bulk".into(), Some("it hangs"));
    let (_, text) = server.get("/metrics").await;
    let shown = samples(&text);
    let expected = [
        ("lanekeeper_deliveries_total{lane=\"marketing\"}", "3"),
        (
            "lanekeeper_outcomes_total{lane=\"transactional\",outcome=\"dispatched\",reason=\"\"}",
            "1",
        ),
        (
            "lanekeeper_sheds_total{lane=\"marketing\",limit=\"lane\"}",
            "1",
        ),
        (
            "devotel_messaging_rate_limiter_fallback_total{lane=\"transactional\",reason=\"timed_out\"}",
            "5",
        ),
        ("lanekeeper_duplicates_total{kind=\"possible\"}", "1"),
        ("lanekeeper_carrier_out{carrier=\"default\"}", "0"),
        ("lanekeeper_carrier_out{carrier=\"bulk\"}", "1"),
        ("lanekeeper_in_flight{lane=\"transactional\"}", "2"),
        ("lanekeeper_oldest_seconds{lane=\"marketing\"}", "1.5"),
        ("lanekeeper_meter_mode{mode=\"local\"}", "1"),
        ("lanekeeper_meter_mode{mode=\"shared\"}", "0"),
        (
            "lanekeeper_queue_wait_seconds_bucket{lane=\"transactional\",le=\"0.002\"}",
            "0",
        ),
        (
            "lanekeeper_queue_wait_seconds_bucket{lane=\"transactional\",le=\"0.005\"}",
            "1",
        ),
        (
            "lanekeeper_queue_wait_seconds_count{lane=\"transactional\"}",
            "1",
        ),
        ("lanekeeper_carrier_seconds_sum{carrier=\"default\"}", "0.3"),
    ];
    for (name, value) in expected {
        assert_eq!(shown.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert!(text.contains("# TYPE devotel_messaging_rate_limiter_fallback_total counter"));
    assert!(text.contains("# TYPE lanekeeper_queue_wait_seconds histogram"));
    assert!(text.contains("# TYPE lanekeeper_in_flight gauge"));
    assert!(!text.contains("otel_scope") && !text.contains("target_info"));
}

/// A program whose environment has nothing but what is given here.
fn program(args: &[&str], environment: &[(&str, &str)]) -> Command {
    let mut command = Command::new(PROGRAM);
    command
        .args(args)
        .env_clear()
        .envs(environment.iter().copied())
        .stdin(Stdio::null());
    command
}

pub(crate) fn run(args: &[&str], environment: &[(&str, &str)]) -> (Output, String) {
    let output = program(args, environment).output().unwrap();
    let text = [&output.stdout[..], &output.stderr].concat();
    (output, String::from_utf8(text).unwrap())
}

fn amqp_url() -> String {
    let default = "amqp://guest:guest@127.0.0.1:5672";
    std::env::var("LANEKEEPER_TEST_AMQP_URL").unwrap_or_else(|_| default.to_owned())
}

pub(crate) fn redis_url() -> String {
    let default = "redis://127.0.0.1:6379";
    std::env::var("LANEKEEPER_TEST_REDIS_URL").unwrap_or_else(|_| default.to_owned())
}

/// The same service with a password that it does not take.
fn with_password(url: &str, user: &str) -> String {
    let mut url = url::Url::parse(url).unwrap();
    url.set_username(user).unwrap();
    url.set_password(Some("S3NTINEL")).unwrap();
    url.into()
}

#[test]
fn check_says_fail_for_each_service_that_does_not() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = nobody.local_addr().unwrap().port();
    drop(nobody);
    let (output, text) = run(
        &["check"],
        &[
            ("LANEKEEPER__AMQP__URL", &format!("amqp://127.0.0.1:{port}")),
            (
                "LANEKEEPER__REDIS__URL",
                &format!("redis://127.0.0.1:{port}"),
            ),
            ("LANEKEEPER__CARRIERS__DEFAULT__KIND", "http"),
            (
                "LANEKEEPER__CARRIERS__DEFAULT__URL",
                &format!("http://127.0.0.1:{port}/"),
            ),
        ],
    );
    let failed: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with("FAIL"))
        .collect();
    assert_eq!(failed.len(), 3, "{text}");
    assert!(
        failed
            .iter()
            .all(|line| line.ends_with("connection refused")),
        "{text}"
    );
    assert_eq!(output.status.code(), Some(1));
}

/// A queue as a worker with another shed delay would have left it.
async fn declare_other_delay(queue: &str) -> lapin::Connection {
    use lapin::types::{AMQPValue, FieldTable};
    let connection = connection(&amqp_url()).await;
    let channel = connection.create_channel().await.unwrap();
    let mut arguments = FieldTable::default();
    let quorum = AMQPValue::LongString("quorum".into());
    arguments.insert("x-queue-type".into(), quorum);
    arguments.insert("x-message-ttl".into(), AMQPValue::LongLongInt(2_500));
    let durable = lapin::options::QueueDeclareOptions {
        durable: true,
        ..Default::default()
    };
    channel
        .queue_declare(queue.into(), durable, arguments)
        .await
        .unwrap();
    connection
}

#[tokio::test(flavor = "multi_thread")]
async fn check_refuses_what_the_worker_would_and_creates_nothing() {
    let prefix = unique_prefix("check");
    let queue = format!("{prefix}.marketing.delay");
    let connection = declare_other_delay(&queue).await;
    let (amqp, redis) = (amqp_url(), redis_url());
    let environment = [
        ("LANEKEEPER__AMQP__URL", amqp.as_str()),
        ("LANEKEEPER__AMQP__PREFIX", prefix.as_str()),
        ("LANEKEEPER__REDIS__URL", redis.as_str()),
        (
            "LANEKEEPER__CARRIERS__DEFAULT__SANDBOX_RECORD_FILE",
            "/nope/x.jsonl",
        ),
    ];
    let (output, text) = run(&["check"], &environment);
    assert_eq!(output.status.code(), Some(1), "{text}");
    let differs = format!("the queue \"{queue}\" exists already with another");
    assert!(
        text.contains("FAIL  amqp ") && text.contains(&differs),
        "{text}"
    );
    let record = "cannot open /nope/x.jsonl (carriers.default.sandbox_record_file): ";
    assert!(text.contains(record), "{text}");
    let channel = connection.create_channel().await.unwrap();
    let passive = lapin::options::QueueDeclareOptions {
        passive: true,
        ..Default::default()
    };
    let other = format!("{prefix}.transactional.delay");
    let found = channel.queue_declare(
        other.as_str().into(),
        passive,
        lapin::types::FieldTable::default(),
    );
    assert!(found.await.is_err(), "check has created {other}");
    let channel = connection.create_channel().await.unwrap();
    let deleted = channel.queue_delete(
        queue.as_str().into(),
        lapin::options::QueueDeleteOptions::default(),
    );
    deleted.await.unwrap();
}

#[test]
fn check_doubts_ports_of_other_services_and_names_wrong_logins() {
    let amqp_port = url::Url::parse(&amqp_url()).unwrap().port().unwrap_or(5672);
    let redis_port = url::Url::parse(&redis_url())
        .unwrap()
        .port()
        .unwrap_or(6379);
    let (amqp, redis) = (
        format!("amqp://127.0.0.1:{redis_port}"),
        format!("redis://127.0.0.1:{amqp_port}"),
    );
    let environment = [
        ("LANEKEEPER__AMQP__URL", amqp.as_str()),
        ("LANEKEEPER__AMQP__CONNECT_TIMEOUT_MS", "1000"),
        ("LANEKEEPER__REDIS__URL", redis.as_str()),
    ];
    let (_, text) = run(&["check"], &environment);
    assert!(text.contains("is this a Redis port?"), "{text}");
    assert!(text.contains("is this a RabbitMQ port?"), "{text}");
    let wrong = with_password(&amqp_url(), "guest");
    let (_, text) = run(&["check"], &[("LANEKEEPER__AMQP__URL", &wrong)]);
    assert!(
        text.contains("user or password is wrong (amqp.url)"),
        "{text}"
    );
}

#[test]
fn check_waits_for_no_silent_service() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let started = Instant::now();
    let (output, text) = run(
        &["check"],
        &[
            ("LANEKEEPER__AMQP__URL", &format!("amqp://{address}")),
            ("LANEKEEPER__AMQP__CONNECT_TIMEOUT_MS", "300"),
            ("LANEKEEPER__REDIS__URL", &format!("redis://{address}")),
            ("LANEKEEPER__REDIS__CONNECT_TIMEOUT_MS", "300"),
            ("LANEKEEPER__CARRIERS__DEFAULT__KIND", "http"),
            (
                "LANEKEEPER__CARRIERS__DEFAULT__URL",
                &format!("https://{address}/"),
            ),
            ("LANEKEEPER__CARRIERS__DEFAULT__CONNECT_TIMEOUT_MS", "300"),
        ],
    );
    assert!(started.elapsed() < Duration::from_secs(5));
    let failed = text.lines().filter(|line| line.starts_with("FAIL"));
    assert_eq!(failed.count(), 3, "{text}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn wrong_settings_are_named_and_nothing_starts() {
    let wrong = [("LANEKEEPER__LANES__BUDGET", "5")];
    let (output, text) = run(&["worker"], &wrong);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        text,
        "error: LANEKEEPER__LANES__BUDGET is no setting; \
         the nearest one is LANEKEEPER__LANES__BUDGET_PER_SECOND\n"
    );
    let (output, text) = run(&["check"], &wrong);
    assert_eq!(output.status.code(), Some(2));
    assert!(text.starts_with("FAIL  settings "), "{text}");
}

#[test]
fn help_teaches() {
    let (output, text) = run(&["--help"], &[]);
    assert_eq!(output.status.code(), Some(0));
    for word in [
        "Examples:",
        "worker",
        "check",
        "enqueue",
        "--config",
        "LANEKEEPER__",
    ] {
        assert!(text.contains(word), "{word}");
    }
    let (_, version) = run(&["--version"], &[]);
    assert_eq!(
        version,
        format!("lanekeeper {}\n", env!("CARGO_PKG_VERSION"))
    );
}

/// Starts a command, lets it run into its troubles for a moment, stops it, and gives its output.
fn brief_run(args: &[&str], environment: &[(&str, &str)]) -> String {
    let mut child = program(args, environment)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_millis(1_500);
    while child.try_wait().unwrap().is_none() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = child.kill();
    let mut text = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    child.wait().unwrap();
    text
}

#[test]
fn no_output_shows_a_password() {
    let (amqp, redis) = (amqp_url(), redis_url());
    let wrong = (
        with_password(&amqp, "guest"),
        with_password(&redis, "default"),
    );
    let away = (
        "amqp://guest:S3NTINEL@127.0.0.1:1/%2F".to_owned(),
        "redis://default:S3NTINEL@127.0.0.1:1/0".to_owned(),
    );
    let no_host = (
        "amqps://guest:S3NTINEL@no-such-host.invalid".to_owned(),
        "rediss://:S3NTINEL@no-such-host.invalid".to_owned(),
    );
    let badly_written = (
        "amqp://guest:S3NTINEL#@127.0.0.1".to_owned(),
        "redis://:S3NTINEL/@127.0.0.1".to_owned(),
    );
    for (amqp, redis) in [wrong, away, no_host, badly_written] {
        let environment = [
            ("RUST_LOG", "trace"),
            ("RUST_BACKTRACE", "full"),
            ("LANEKEEPER__AMQP__URL", amqp.as_str()),
            ("LANEKEEPER__REDIS__URL", redis.as_str()),
            ("LANEKEEPER__OPS__LISTEN", "127.0.0.1:0"),
            ("LANEKEEPER__CARRIERS__DEFAULT__KIND", "http"),
            (
                "LANEKEEPER__CARRIERS__DEFAULT__URL",
                "https://u:S3NTINEL@127.0.0.1:1/?k=S3NTINEL",
            ),
            ("LANEKEEPER__CARRIERS__DEFAULT__AUTH_TOKEN", "S3NTINEL"),
        ];
        for args in [&["check"][..], &["check", "--json"], &["worker"]] {
            let text = brief_run(args, &environment);
            assert!(!text.is_empty(), "{args:?}");
            assert!(!text.contains("S3NTINEL"), "{args:?}: {text}");
            if args == ["worker"] {
                assert_lines_are_events(&text);
            }
        }
    }
}

/// Away from a terminal, a worker writes one JSON object a line, or one line on why it cannot start.
fn assert_lines_are_events(text: &str) {
    for line in text.lines().filter(|line| !line.starts_with("error: ")) {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        let target = event["target"].as_str().unwrap();
        assert!(target.starts_with("lanekeeper"), "{line}");
    }
}
