//! The operators' HTTP server: `/metrics`, `/healthz`, `/readyz`.
//!
//! One request per connection, each connection with a deadline, and never more than
//! [`MAX_CONNECTIONS`]: a new one takes the place of the oldest, which has been silent longest. So
//! whoever opens connections and says nothing costs little, and health is answered all the same.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde::Serialize;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::metrics::Metrics;

/// Connections at one time.
pub const MAX_CONNECTIONS: usize = 128;

/// How long a client may take to send its request's head.
const HEAD_WITHIN: Duration = Duration::from_secs(5);

/// How long a connection may last in all.
const DONE_WITHIN: Duration = Duration::from_secs(15);

/// The largest head of a request, in bytes.
const MAX_HEAD: usize = 16 * 1024;

/// How long to wait when no connection can be accepted, for lack of file descriptors for example.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Whether one lane takes jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LaneReadiness {
    /// The lane's name.
    pub lane: &'static str,
    /// Whether it is consuming.
    pub ready: bool,
    /// What is missing, when it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Whether the process does its work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Readiness {
    /// One entry per lane.
    pub lanes: Vec<LaneReadiness>,
}

impl Readiness {
    /// Whether every lane is ready. A process without lanes is not.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !self.lanes.is_empty() && self.lanes.iter().all(|lane| lane.ready)
    }
}

/// Tells whether the process is ready, each time that somebody asks.
pub type ReadinessSource = Arc<dyn Fn() -> Readiness + Send + Sync>;

/// Serves until `stop`.
pub async fn serve(
    listener: TcpListener,
    metrics: Metrics,
    readiness: ReadinessSource,
    stop: CancellationToken,
) {
    let router = router(metrics, readiness);
    let mut open = Connections::default();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => return,
        };
        match accepted {
            Ok((stream, _)) => open.add(tokio::spawn(converse(stream, router.clone()))),
            Err(error) => {
                tracing::warn!(kind = %error.kind(), "the operators' server cannot accept a connection");
                tokio::time::sleep(ACCEPT_AGAIN_AFTER).await;
            }
        }
    }
}

/// Open connections, oldest first. All end with it.
#[derive(Default)]
struct Connections(VecDeque<JoinHandle<()>>);

impl Connections {
    fn add(&mut self, connection: JoinHandle<()>) {
        self.0.retain(|open| !open.is_finished());
        if self.0.len() >= MAX_CONNECTIONS
            && let Some(oldest) = self.0.pop_front()
        {
            oldest.abort();
        }
        self.0.push_back(connection);
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

async fn converse(stream: TcpStream, router: Router) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_header_size(MAX_HEAD)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    // A client that breaks off or is too slow is its own affair.
    let _ = tokio::time::timeout(DONE_WITHIN, connection).await;
}

fn router(metrics: Metrics, readiness: ReadinessSource) -> Router {
    Router::new()
        .route(
            "/metrics",
            get(move || async move { show_metrics(&metrics) }),
        )
        .route(
            "/healthz",
            get(|| async { json(StatusCode::OK, r#"{"alive":true}"#) }),
        )
        .route(
            "/readyz",
            get(move || async move { show_readiness(&readiness()) }),
        )
        .fallback(|| async { json(StatusCode::NOT_FOUND, NOT_FOUND) })
        .method_not_allowed_fallback(|| async {
            json(
                StatusCode::METHOD_NOT_ALLOWED,
                r#"{"error":"only GET is served here"}"#,
            )
        })
}

const NOT_FOUND: &str = r#"{"error":"only /metrics, /healthz and /readyz are served here"}"#;

fn show_metrics(metrics: &Metrics) -> Response {
    match metrics.render() {
        Ok(text) => {
            let kind = [(header::CONTENT_TYPE, prometheus::TEXT_FORMAT)];
            (kind, text).into_response()
        }
        Err(error) => {
            tracing::error!(%error, "metrics cannot be shown");
            json(
                StatusCode::INTERNAL_SERVER_ERROR,
                r#"{"error":"metrics cannot be shown"}"#,
            )
        }
    }
}

#[derive(Serialize)]
struct ReadyAnswer<'a> {
    ready: bool,
    #[serde(flatten)]
    readiness: &'a Readiness,
}

fn show_readiness(readiness: &Readiness) -> Response {
    let ready = readiness.is_ready();
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let answer = ReadyAnswer { ready, readiness };
    let text = serde_json::to_string(&answer).unwrap_or_else(|_| r#"{"ready":false}"#.to_owned());
    json(status, text)
}

fn json(status: StatusCode, body: impl Into<String>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (status, headers, body.into()).into_response()
}
