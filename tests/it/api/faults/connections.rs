//! Connections that say nothing, and too many of them.

use std::io::ErrorKind;
use std::time::Duration;

use reqwest::Method;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use crate::support::api::{ApiServer, DEV_KEY, answer, client, issue_key, message};
use crate::support::raw::Line;
use crate::support::scene::{ACCOUNT, Scene};
use crate::support::worker::WorkerConfig;
use crate::support::{busy, eventually, heavy};

const SILENT: usize = 2_000;

/// What a client that says something has to wait at most.
const IN_TIME: Duration = Duration::from_millis(2_500);

/// When a connection that has said nothing is closed, with time to spare.
const CLOSED_BY: Duration = Duration::from_secs(40);

/// This process needs descriptors too.
fn raise_own_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
}

/// Waits until the server has closed it.
async fn wait_closed(stream: &mut TcpStream) {
    // A reset is an end, too.
    let read = timeout(CLOSED_BY, stream.read(&mut [0])).await;
    assert!(matches!(read, Ok(Ok(0) | Err(_))), "still open");
}

/// More silent connections than the server may have files open keep nobody else out, neither clients nor
/// operators, and all are closed in the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_connections_keep_nobody_out() {
    let alone = heavy().await;
    raise_own_limit();
    let (scene, database) = Scene::with_database("api-silent").await;
    let key = issue_key(&database, ACCOUNT).await;
    let api = ApiServer::start(&scene.config.clone().descriptors(1_024)).await;
    let mut silent = Vec::new();
    let mut longest = Duration::ZERO;
    for number in 0..SILENT {
        silent.push(TcpStream::connect(&api.address).await.unwrap());
        if number % 100 == 99 {
            longest = longest.max(assert_serves(&api, &key).await);
        }
    }
    for _ in 0..20 {
        longest = longest.max(assert_serves(&api, &key).await);
    }
    println!(
        "figure: silent_connections count={SILENT} longest_ms={}",
        longest.as_millis()
    );
    assert!(!api.process.errors().contains("cannot accept"));
    drop(alone);
    for stream in &mut silent {
        wait_closed(stream).await;
    }
    api.process.stop().await;
    scene.end().await;
}

/// With a new connection, as every client that comes later; gives how long it took.
async fn assert_serves(api: &ApiServer, key: &str) -> Duration {
    let started = Instant::now();
    let request = client().post(api.url("/api/v1/messages/sms"));
    let sent = answer(request.header("X-API-Key", key).json(&message("high"))).await;
    assert!([202, 429].contains(&sent.status.as_u16()), "{sent:?}");
    assert!(api.process.ops("/healthz").await.contains("true"));
    let took = started.elapsed();
    assert!(took < IN_TIME, "{took:?}");
    took
}

/// Many clients that come at once while the server is busy wait for it; none has to knock again, which
/// takes a second.
#[tokio::test]
async fn a_burst_of_clients_is_let_in_when_the_server_has_time() {
    raise_own_limit();
    let server = ApiServer::dev().await;
    server.process.signal("STOP");
    let mut lines = Vec::new();
    for _ in 0..800 {
        let connect = Line::open(&server.address);
        let line = timeout(Duration::from_millis(900), connect).await;
        lines.push(line.expect("it waits in the queue"));
    }
    server.process.signal("CONT");
    let request = "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    for mut line in lines {
        line.say(request.as_bytes()).await;
        assert_eq!(line.hear(IN_TIME).await.statuses(), [200]);
    }
    server.process.stop().await;
}

fn is_closed(stream: &TcpStream) -> bool {
    match stream.try_read(&mut [0]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}

/// A connection that is used is not the one that has been idle longest, however old it is.
#[tokio::test]
async fn a_connection_in_use_is_kept_when_idle_ones_make_room() {
    let config = WorkerConfig::new("unused").set("API__MAX_CONNECTIONS", 8);
    let server = ApiServer::dev_with(&config).await;
    let request =
        format!("GET /api/v1/nothing HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {DEV_KEY}\r\n\r\n");
    let mut used = Line::open(&server.address).await;
    let mut idle = Vec::new();
    for asked in 1..=40 {
        idle.push(TcpStream::connect(&server.address).await.unwrap());
        assert!(used.say(request.as_bytes()).await);
        let heard = used.hear_answers(asked, IN_TIME).await;
        assert_eq!(heard.statuses().len(), asked, "closed: {heard:?}");
    }
    // All but seven had to make room.
    let closed = async || idle.iter().filter(|stream| is_closed(stream)).count() == 33;
    eventually("idle connections are closed", IN_TIME, closed).await;
    server.process.stop().await;
}

/// Heads and bodies that do not come, and clients that have had their answer and stay.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_stays_silent_is_hung_up_on() {
    let _busy = busy().await;
    let server = ApiServer::dev().await;
    let path = "POST /api/v1/messages/sms HTTP/1.1\r\n";
    let json = "Content-Type: application/json\r\n";
    let head = format!(
        "{path}Host: localhost\r\nX-API-Key: {DEV_KEY}\r\n{json}Content-Length: 500\r\n\r\n{{"
    );
    let answered =
        format!("GET /openapi.json HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {DEV_KEY}\r\n\r\n");
    let cases = [
        ("", 0),
        (path, 0),
        (head.as_str(), 408),
        (answered.as_str(), 200),
    ];
    let waits = cases.map(async |(said, status)| {
        let mut line = Line::open(&server.address).await;
        line.say(said.as_bytes()).await;
        let reply = line.hear(CLOSED_BY).await;
        assert!(reply.closed, "{said}");
        // A head that did not come may be told so, too.
        let is_told = reply.status() == status || (status == 0 && reply.status() == 408);
        assert!(is_told, "{said}: {reply:?}");
    });
    futures_util::future::join_all(waits).await;
    assert_eq!(
        answer(server.request(Method::GET, "/api/v1/nothing", DEV_KEY))
            .await
            .status,
        404
    );
    server.process.stop().await;
}
