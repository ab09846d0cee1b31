//! What goes around every answer: its id, its envelope, its time limit.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use tokio::time::{Instant, timeout};

use super::app::App;
use super::body;
use super::error::{ApiError, Code};
use super::reply::Sealed;
use crate::digest::hex;

/// The header of a request's id.
static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// How long an answer may take once the request has arrived: clients are promised 2.5 s.
const ANSWER_WITHIN: Duration = Duration::from_millis(2_400);

/// Paths whose requests or answers are streams: they look after their own size and time.
const STREAMED: [&str; 3] = ["/api/v1/batches", "/api/v1/lanes/events", "/page/events"];

/// Puts the envelope around whatever comes out.
pub(super) async fn seal(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let (id, started) = (request_id(), Instant::now());
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or_else(String::new, |path| path.as_str().to_owned());
    let mut response = dressed(next.run(request).await);
    let mut code = "";
    if let Some(sealed) = response.extensions_mut().remove::<Sealed>() {
        code = sealed.code().map_or("", Code::as_str);
        sealed.open(&mut response, &id, app.clock.now());
    }
    let (status, took) = (response.status().as_u16(), started.elapsed());
    tracing::debug!(id, route, status, code, ?took, "answered");
    app.telemetry.answered(route, status, code, took);
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&id) {
        headers.insert(&REQUEST_ID, id);
    }
    let nosniff = HeaderValue::from_static("nosniff");
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    let no_store = HeaderValue::from_static("no-store");
    headers.entry(header::CACHE_CONTROL).or_insert(no_store);
    response
}

/// Errors of routes that are not of the API's own making, such as those of its reference page, have no
/// content that could be put into the envelope.
fn dressed(response: Response) -> Response {
    let status = response.status();
    let is_bare = response.extensions().get::<Sealed>().is_none();
    if is_bare && status.is_server_error() {
        return ApiError::new(Code::InternalError, "something is wrong in here").into_response();
    }
    if is_bare && status.is_client_error() {
        return nothing_there().into_response();
    }
    response
}

/// Nobody has a route for the path.
pub(super) fn nothing_there() -> ApiError {
    let message = "there is nothing at this path; /docs lists what there is";
    ApiError::new(Code::NotFound, message)
}

/// Reads the body and then lets the handler have its time.
pub(super) async fn within_limits(request: Request, next: Next) -> Response {
    if STREAMED.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    body::collect(request, next).await
}

/// What has not been answered by then is told to be unknown. It goes on all the same.
pub(super) async fn in_time(request: Request, next: Next) -> Response {
    if STREAMED.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    let only_reads = request.method().is_safe();
    let answered = timeout(ANSWER_WITHIN, next.run(request)).await;
    answered.unwrap_or_else(|_| too_late(only_reads).into_response())
}

/// Nothing is queued by reading.
fn too_late(only_reads: bool) -> ApiError {
    if only_reads {
        return ApiError::unavailable("the answer has taken too long: try again");
    }
    let why = "the answer has taken too long; whether the request has had an effect is unknown";
    ApiError::unavailable(why).detail("queued", "unknown")
}

fn request_id() -> String {
    let mut bytes = [0; 16];
    // It tells requests apart in logs, and guards nothing.
    fastrand::fill(&mut bytes);
    format!("req_{}", hex(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_have_queued_something_says_that_it_may() {
        assert!(!too_late(true).details().contains_key("queued"));
        assert_eq!(too_late(false).details()["queued"], "unknown");
    }
}
