//! Hostile input of every kind: the server answers in time and with less than 500, lives on, and
//! writes down nothing of it. Requests are made up from a fixed seed, for every route of the document.

mod requests;
mod texts;

use std::time::Duration;

use fastrand::Rng;
use futures_util::{StreamExt as _, stream};
use serde_json::Value;

use self::requests::Operations;
use super::faults::assert_silent;
use crate::support::api::{ApiServer, DEV_KEY, client, issue_key, message};
use crate::support::busy;
use crate::support::raw::{Heard, Line};
use crate::support::scene::{ACCOUNT, Scene};
use crate::support::worker::WorkerConfig;

/// An answer comes within this, or the connection is closed.
const IN_TIME: Duration = Duration::from_secs(3);

/// How long it is waited before the server is told that nothing more will come.
const MORE: Duration = Duration::from_millis(250);

/// Connections at one time.
const AT_ONCE: usize = 16;

const SEED: u64 = 0x1a9e;

async fn loud_server() -> ApiServer {
    let config = WorkerConfig::new("unused")
        .set("API__REQUESTS_PER_SECOND", 0)
        .set("LOG__LEVEL", "trace");
    ApiServer::dev_with(&config).await
}

async fn document(server: &ApiServer) -> Value {
    let document = client().get(server.url("/openapi.json")).send();
    document.await.unwrap().json().await.unwrap()
}

/// Sends each on a connection of its own.
async fn exchange(address: &str, requests: Vec<Vec<u8>>) -> Vec<(Vec<u8>, Heard)> {
    let exchanges = requests.into_iter().map(async |request| {
        let mut line = Line::open(address).await;
        line.say(&request).await;
        let mut heard = line.hear(MORE).await;
        if !heard.closed {
            line.end().await;
            heard = line.hear(IN_TIME).await;
        }
        (request, heard)
    });
    stream::iter(exchanges)
        .buffer_unordered(AT_ONCE)
        .collect()
        .await
}

/// In time, no fault of the server's, and in the one form.
fn judge(request: &[u8], heard: &Heard) {
    let shown = || {
        let request = String::from_utf8_lossy(request);
        format!("{request:.1000}\n\n{heard:.2000?}")
    };
    assert!(heard.closed, "still open: {}", shown());
    for status in heard.statuses() {
        assert!((100..500).contains(&status), "{}", shown());
    }
    if heard.status() < 400 || heard.body().is_empty() {
        return;
    }
    let body: Value = serde_json::from_str(heard.body()).unwrap_or_else(|_| panic!("{}", shown()));
    assert_eq!(body["error"]["status"], heard.status(), "{}", shown());
    assert!(body["meta"]["request_id"].is_string(), "{}", shown());
}

/// It still does what it is there for, and has kept everything to itself.
async fn assert_unharmed(mut server: ApiServer, key: &str) {
    assert!(server.process.is_running());
    let resume = server.send(key, &message("high")).await;
    // Some of what came may have paused the account.
    assert!(
        [202, 402, 403, 429].contains(&resume.status.as_u16()),
        "{resume:?}"
    );
    let log = server.process.errors();
    assert!(!log.contains("panicked"), "{log}");
    assert_silent(&log);
    assert!(!log.contains(key.rsplit('_').next().unwrap()));
    server.process.stop().await;
}

fn counted(exchanges: &[(Vec<u8>, Heard)], status: u16) -> usize {
    let statuses = exchanges.iter().map(|(_, heard)| heard.status());
    statuses.filter(|heard| *heard == status).count()
}

async fn assert_never_stumbles(server: ApiServer, key: &str, count: usize) {
    let operations = Operations::of(&document(&server).await, key);
    let mut random = Rng::with_seed(SEED);
    let requests = (0..count).map(|_| operations.request(&mut random));
    let mut exchanges = exchange(&server.address, requests.collect()).await;
    for (request, heard) in &mut exchanges {
        // A database that is busy may be late; one that cannot take what came says so each time.
        if heard.status() == 503 {
            *heard = exchange(&server.address, vec![request.clone()])
                .await
                .remove(0)
                .1;
        }
        judge(request, heard);
        assert_ne!(heard.status(), 0, "{}", String::from_utf8_lossy(request));
    }
    // It has come past the doors, and not only up to them.
    for status in [200, 202, 400, 401, 404, 415, 422] {
        let count = counted(&exchanges, status);
        assert!(count > 0, "none was answered {status}");
    }
    assert_unharmed(server, key).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_body_header_or_path_makes_the_server_stumble() {
    let _busy = busy().await;
    let server = loud_server().await;
    assert_never_stumbles(server, DEV_KEY, 3_000).await;
}

/// PostgreSQL is choosier about texts and numbers than memory is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn none_makes_the_database_stumble() {
    let _busy = busy().await;
    let (scene, database) = Scene::with_database("api-fuzz").await;
    let key = issue_key(&database, ACCOUNT).await;
    let loud = scene.config.clone().set("LOG__LEVEL", "trace");
    let server = ApiServer::start(&loud.set("API__REQUESTS_PER_SECOND", 0)).await;
    assert_never_stumbles(server, &key, 2_000).await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_bytes_make_the_server_stumble() {
    let _busy = busy().await;
    let server = loud_server().await;
    let mut random = Rng::with_seed(SEED);
    let mut requests = requests::shapes();
    for _ in 0..1_500 {
        let shape = random.usize(..requests::shapes().len());
        let mut request = requests::shapes().swap_remove(shape);
        texts::spoil(&mut random, &mut request);
        requests.push(request);
    }
    let exchanges = exchange(&server.address, requests).await;
    for (request, heard) in &exchanges {
        judge(request, heard);
    }
    assert!(counted(&exchanges, 202) > 0);
    assert_unharmed(server, DEV_KEY).await;
}

/// Two programs that read one stream of bytes in two ways are how requests are smuggled: whatever can
/// be read in two ways must be the last that is read from its connection.
#[tokio::test]
async fn what_follows_an_ambiguous_request_is_not_answered() {
    let server = loud_server().await;
    for ambiguous in requests::ambiguous() {
        let heard = exchange(&server.address, vec![ambiguous]).await.remove(0);
        judge(&heard.0, &heard.1);
        let answers = heard.1.statuses();
        assert!(answers.len() <= 1, "{}", String::from_utf8_lossy(&heard.0));
        assert!(!heard.1.text.contains("Swagger"), "{:?}", heard.1);
    }
    assert_unharmed(server, DEV_KEY).await;
}
