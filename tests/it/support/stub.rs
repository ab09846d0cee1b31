//! A carrier behind HTTP, inside the test: records what arrives and answers as it is told.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures_util::{StreamExt as _, stream};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::eventually;

/// One call that reached the carrier.
#[derive(Debug, Clone)]
pub struct Arrival {
    pub id: String,
    pub account: String,
    pub lane: String,
    /// The `Idempotency-Key`.
    pub key: String,
    /// Counts from 1.
    pub attempt: u64,
    pub at: Instant,
}

/// What the carrier does with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// 202 with a reference.
    Accept,
    /// This status.
    Status(u16),
    /// 429 with `Retry-After` in seconds.
    Throttle(u64),
    /// No answer at all.
    Hang,
    /// Breaks the connection in the middle of a 200's body.
    CloseMidBody,
}

/// Decides on each call by its id and attempt.
type Script = Box<dyn Fn(&str, u64) -> Reply + Send + Sync>;

struct Shared {
    arrivals: Mutex<Vec<Arrival>>,
    script: Mutex<Script>,
    latency: Mutex<Duration>,
}

/// The running stub.
pub struct Stub {
    pub url: String,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

impl Stub {
    /// A carrier that accepts everything at once.
    pub async fn start() -> Self {
        let shared = Arc::new(Shared {
            arrivals: Mutex::new(Vec::new()),
            script: Mutex::new(Box::new(|_, _| Reply::Accept)),
            latency: Mutex::new(Duration::ZERO),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/messages", listener.local_addr().unwrap());
        let routes = Router::new()
            .route("/messages", post(receive))
            .with_state(Arc::clone(&shared));
        let server = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self {
            url,
            shared,
            server,
        }
    }

    /// Answers after so long from now on.
    pub fn set_latency(&self, latency: Duration) {
        *self.shared.latency.lock().unwrap() = latency;
    }

    /// Answers as `script` says from now on; it gets id and attempt.
    pub fn set_script(&self, script: impl Fn(&str, u64) -> Reply + Send + Sync + 'static) {
        *self.shared.script.lock().unwrap() = Box::new(script);
    }

    /// Every call so far, in order of arrival.
    pub fn arrivals(&self) -> Vec<Arrival> {
        self.shared.arrivals.lock().unwrap().clone()
    }

    /// How many calls arrived so far.
    pub fn count(&self) -> usize {
        self.shared.arrivals.lock().unwrap().len()
    }

    /// How many different jobs arrived so far.
    pub fn distinct(&self) -> usize {
        let arrivals = self.shared.arrivals.lock().unwrap();
        arrivals
            .iter()
            .map(|arrival| arrival.key.as_str())
            .collect::<HashSet<_>>()
            .len()
    }

    /// When a job first arrived.
    pub fn first(&self, id: &str) -> Option<Instant> {
        let arrivals = self.shared.arrivals.lock().unwrap();
        let first = arrivals.iter().find(|arrival| arrival.id == id);
        first.map(|arrival| arrival.at)
    }

    /// Waits for so many different jobs.
    ///
    /// # Panics
    /// When they do not all arrive within `limit`.
    pub async fn wait_for(&self, jobs: usize, limit: Duration) {
        let what = format!("{jobs} jobs at the carrier");
        eventually(&what, limit, async || self.distinct() >= jobs).await;
    }

    /// Jobs that arrived more than once, with the number of their calls.
    pub fn duplicates(&self) -> BTreeMap<String, usize> {
        let mut calls = BTreeMap::new();
        for arrival in self.arrivals() {
            *calls.entry(arrival.key).or_insert(0) += 1;
        }
        calls.retain(|_, count| *count > 1);
        calls
    }

    /// How long each of these jobs took from its publishing to its first arrival; all must have arrived.
    pub fn latencies(&self, published: &HashMap<String, Instant>) -> Vec<Duration> {
        let mut first = HashMap::new();
        for arrival in self.arrivals() {
            first.entry(arrival.id).or_insert(arrival.at);
        }
        let latency = |(id, at): (&String, &Instant)| {
            let arrived = first.get(id);
            arrived
                .unwrap_or_else(|| panic!("{id} has not arrived"))
                .saturating_duration_since(*at)
        };
        published.iter().map(latency).collect()
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn receive(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    let at = Instant::now();
    let job: Value = serde_json::from_slice(&body).unwrap();
    let text = |field: &str| job[field].as_str().unwrap_or_default().to_owned();
    let key = headers.get("idempotency-key");
    let attempt = job["attempt"].as_u64().unwrap_or_default();
    let reply = shared.script.lock().unwrap()(&text("id"), attempt);
    shared.arrivals.lock().unwrap().push(Arrival {
        id: text("id"),
        account: text("account_id"),
        lane: text("lane"),
        key: key.map_or("", |key| key.to_str().unwrap()).to_owned(),
        attempt,
        at,
    });
    let latency = *shared.latency.lock().unwrap();
    if !latency.is_zero() {
        sleep(latency).await;
    }
    answer(reply, &text("id")).await
}

async fn answer(reply: Reply, id: &str) -> Response {
    match reply {
        Reply::Accept => (StatusCode::ACCEPTED, format!(r#"{{"id":"ref-{id}"}}"#)).into_response(),
        Reply::Status(code) => StatusCode::from_u16(code).unwrap().into_response(),
        Reply::Throttle(seconds) => {
            let header = [("retry-after", seconds.to_string())];
            (StatusCode::TOO_MANY_REQUESTS, header).into_response()
        }
        Reply::Hang => std::future::pending().await,
        Reply::CloseMidBody => {
            let part = stream::iter([Ok(Bytes::from_static(b"{\"id\":"))]);
            // Late enough for the part to have left.
            let broken = stream::once(async {
                sleep(Duration::from_millis(50)).await;
                Err(std::io::Error::other("told to break"))
            });
            Body::from_stream(part.chain(broken)).into_response()
        }
    }
}

#[tokio::test]
async fn the_stub_answers_as_it_is_told() {
    let stub = Stub::start().await;
    stub.set_script(|id, attempt| match (id, attempt) {
        ("a", 1) => Reply::Throttle(7),
        ("b", _) => Reply::CloseMidBody,
        _ => Reply::Accept,
    });
    let client = reqwest::Client::new();
    let call = async |id: &str, attempt: u64| {
        let job =
            format!(r#"{{"id":"{id}","account_id":"x","lane":"marketing","attempt":{attempt}}}"#);
        let call = client.post(&stub.url).header("idempotency-key", id);
        call.body(job).send().await.unwrap()
    };
    let throttled = call("a", 1).await;
    assert_eq!(throttled.status(), 429);
    assert_eq!(throttled.headers()["retry-after"], "7");
    assert_eq!(call("a", 2).await.status(), 202);
    let broken = call("b", 1).await;
    assert_eq!(broken.status(), 200);
    assert!(broken.text().await.is_err());
    assert_eq!((stub.count(), stub.distinct()), (3, 2));
    assert_eq!(stub.duplicates(), BTreeMap::from([("a".to_owned(), 2)]));
}
