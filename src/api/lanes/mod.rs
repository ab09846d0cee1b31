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

use super::app::App;
use super::auth::Caller;
use super::error::ApiResult;
use super::reply::{Envelope, ErrorEnvelope, Reply};
use crate::accounts::keys::KeyScope;
use crate::overview::LanesView;

/// How the lanes stand
///
/// Per lane its limit, what the account's counter stands at, what was sent, shed and refused in the
/// last minute by all workers and API servers together, what is queued, and how old the oldest of it
/// is. What cannot be asked at the moment is null, and named under `missing`.
#[utoipa::path(
    get,
    path = "/api/v1/lanes",
    tag = "lanes",
    operation_id = "showLanes",
    security(("api_key" = [])),
    responses(
        (status = 200, description = "How the lanes stand", body = Envelope<LanesView>),
        (status = 401, description = "No key, or none that is valid", body = ErrorEnvelope),
        (status = 403, description = "The key has not the scope `read`", body = ErrorEnvelope),
        (status = 429, description = "Too many requests with this key", body = ErrorEnvelope),
        (status = 503, description = "It took too long", body = ErrorEnvelope),
    )
)]
pub async fn lanes(State(app): State<Arc<App>>, caller: Caller) -> ApiResult<Reply<LanesView>> {
    caller.may(KeyScope::Read)?;
    Ok(Reply::ok(app.lanes.now(&caller.account).await))
}
