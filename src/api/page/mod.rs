//! The lanes page at `/`, compiled in: it loads nothing from elsewhere and runs nothing inline.
//!
//! With `api` the page asks for an admin key, keeps it for as long as its tab lives, and sends it as
//! a header of its stream. With `dev` it needs none, as long as it is used from this machine.

mod assets;
mod door;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;

use super::app::App;
use super::error::{ApiError, ApiResult, Code};
use super::lanes::{Viewer, stream};
use assets::Asset;
pub use door::PageDoor;

/// What the page may load and do.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The page, its assets, and with `dev` its stream.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/", get(page))
        .route("/page/events", get(events))
        .route("/page/{asset}", get(asset))
}

/// With `dev` every request must be made to a name of this machine: its key is known to everybody, so
/// a page of some other site whose name leads here could use it.
pub(super) async fn from_this_machine(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
) -> Response {
    if app.page.shuts_out(request.headers()) {
        let message = "Host: expected a name of this machine, such as localhost or 127.0.0.1";
        return ApiError::new(Code::Forbidden, message).into_response();
    }
    next.run(request).await
}

async fn page(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    let is_open = app.page.opens_to(&headers, false).is_some();
    serve(&assets::page(is_open))
}

async fn asset(Path(name): Path<String>) -> ApiResult<Response> {
    let asset = assets::ALL.iter().find(|asset| asset.name == name);
    asset
        .map(serve)
        .ok_or_else(|| ApiError::not_found("such part of the page"))
}

/// Without a key; only where the page needs none.
async fn events(State(app): State<Arc<App>>, headers: HeaderMap) -> ApiResult<Response> {
    let account = app.page.opens_to(&headers, true);
    let account = account.ok_or_else(|| ApiError::not_found("stream without a key here"))?;
    stream(&app, Viewer::Local, account)
}

fn serve(asset: &Asset) -> Response {
    let mut response = asset.content.clone().into_response();
    let headers = [
        (header::CONTENT_TYPE, asset.kind),
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ];
    for (name, value) in headers {
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    }
    response
}
