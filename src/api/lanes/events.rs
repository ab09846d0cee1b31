//! The stream's route.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use utoipa::ToSchema;

use super::stream::{Viewer, stream};
use crate::accounts::keys::KeyScope;
use crate::api::app::App;
use crate::api::auth::Caller;
use crate::api::error::ApiResult;
use crate::api::reply::ErrorEnvelope;

/// One event of the stream.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes")]
pub(super) struct LaneEvent {
    /// `lanes`, or `end`, which is the last.
    event: String,
    /// JSON: how the lanes stand, or why the stream ends.
    data: String,
    /// How soon a reader whose connection breaks should come again, in milliseconds.
    retry: Option<u32>,
}

/// Watch the lanes
///
/// Server-sent events for the page at `/`: one event `lanes` a second, with how the lanes stand and
/// the last minute second by second (all of it in the first event, then what may be new). The stream
/// ends when its key is revoked, when the server stops, and after 15 minutes, each time with an event
/// `end` that says why (`key_revoked`, `stopping`, `renew`). A reader that takes nothing for 10
/// seconds is left. 8 streams per key, and 64 per server, may be open.
#[utoipa::path(
    get,
    path = "/api/v1/lanes/events",
    tag = "lanes",
    operation_id = "watchLanes",
    security(("api_key" = [])),
    responses(
        (status = 200, description = "The stream", content_type = "text/event-stream", body = LaneEvent),
        (status = 401, description = "No key, or none that is valid", body = ErrorEnvelope),
        (status = 403, description = "The key has not the scope `admin`", body = ErrorEnvelope),
        (status = 429, description = "Too many requests or streams", body = ErrorEnvelope),
        (status = 503, description = "Keys cannot be checked yet", body = ErrorEnvelope),
    )
)]
pub async fn lane_events(State(app): State<Arc<App>>, caller: Caller) -> ApiResult<Response> {
    caller.may(KeyScope::Admin)?;
    stream(&app, Viewer::Key(caller.key), &caller.account)
}
