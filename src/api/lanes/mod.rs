//! The lanes of the caller's account: one look, or a stream of looks.
//!
//! Whoever watches shares one look a second with all others who watch the same account; nobody
//! watching, nothing is asked. Streams are few by design: they are for people.

pub(super) mod events;
mod stream;
mod watches;

use std::sync::Arc;

use axum::extract::State;

pub(super) use stream::{Viewer, stream};
pub use watches::Watches;

use super::answers::ReadErrors;
use super::app::App;
use super::auth::Caller;
use super::error::{ApiError, ApiResult};
use super::reply::{Envelope, Reply};
use crate::accounts::keys::KeyScope;
use crate::overview::LanesView;

/// How the lanes stand
///
/// Per lane its limit, what the account's counter stands at, what was sent, shed and refused in the
/// last minute by all workers and API servers together, what is queued, and how old the oldest of it
/// is. What cannot be asked at the moment is null, and named under `missing`. All who ask within a
/// second share one look.
#[utoipa::path(
    get,
    path = "/api/v1/lanes",
    tag = "lanes",
    operation_id = "showLanes",
    security(("api_key" = [])),
    responses(
        (status = 200, description = "How the lanes stand", body = Envelope<LanesView>),
        ReadErrors,
    )
)]
pub async fn lanes(State(app): State<Arc<App>>, caller: Caller) -> ApiResult<Reply<LanesView>> {
    caller.may(KeyScope::Read)?;
    let lanes = app.lanes.now(&caller.account).await;
    let lanes = lanes.ok_or_else(|| ApiError::unavailable("the lanes could not be looked at"))?;
    Ok(Reply::ok(lanes))
}
