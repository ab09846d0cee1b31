//! `DELETE /api/v1/holds/{kind}/{id}`.

use std::sync::Arc;

use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;

use super::view::{HoldKindName, ResumedView, target};
use crate::accounts::keys::KeyScope;
use crate::accounts::tables::holds::Lifted;
use crate::accounts::{HoldKind, hold_name};
use crate::api::answers::ReadErrors;
use crate::api::app::App;
use crate::api::audit::audit;
use crate::api::auth::Caller;
use crate::api::error::{ApiError, ApiResult, Code};
use crate::api::path::PathParams;
use crate::api::query::Query;
use crate::api::reply::{Envelope, ErrorEnvelope, Reply};
use crate::dispatch::ports::Hold;

/// How far to go.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Resuming {
    /// Lift a cancellation as well: messages that have ended stay so, later ones go out
    cancelled: Option<bool>,
}

/// Resume
///
/// What was paused goes on, never faster than the budget allows.
#[utoipa::path(
    delete,
    path = "/api/v1/holds/{kind}/{id}",
    tag = "holds",
    operation_id = "resume",
    params(
        ("kind" = inline(HoldKindName), Path, description = "What is held"),
        ("id" = String, Path, description = "Its id, percent-encoded; the account's own for `account`", example = "spring"),
        Resuming,
    ),
    responses(
        (status = 200, description = "It goes on", body = Envelope<ResumedView>),
        (status = 404, description = "`NOT_FOUND`: it is not held", body = ErrorEnvelope),
        (status = 409, description = "`CONFLICT`: it is cancelled, and `cancelled=true` was not given", body = ErrorEnvelope),
        ReadErrors,
    ),
    security(("api_key" = [])),
)]
pub async fn resume(
    State(app): State<Arc<App>>,
    caller: Caller,
    path: PathParams,
    Query(resuming): Query<Resuming>,
) -> ApiResult<Reply<ResumedView>> {
    caller.may(KeyScope::Admin)?;
    let kind = HoldKind::parse(&path.get("kind")?).ok_or_else(|| {
        let known = HoldKind::ALL.map(HoldKind::as_str).join(", ");
        ApiError::validation("kind", None, format!("expected one of {known}"))
    })?;
    let on = target(&caller.account, kind, Some(&path.get("id")?))?;
    let gravest = if resuming.cancelled == Some(true) {
        Hold::Cancelled
    } else {
        Hold::Paused
    };
    let before = match app.store.lift_hold(&on, gravest, caller.key).await? {
        Lifted::Lifted(before) => before,
        Lifted::NotHeld => return Err(ApiError::not_found("such hold")),
        Lifted::Graver(_) => {
            let message = "it is cancelled, not paused; give cancelled=true to lift that: messages \
                           that have ended stay so, and later ones go out";
            return Err(ApiError::new(Code::Conflict, message));
        }
        Lifted::Operators(_) => {
            let message = "an operator has made this hold, and only an operator can lift it";
            return Err(ApiError::new(Code::Forbidden, message));
        }
    };
    audit(
        &caller,
        "hold.resume",
        format_args!("{} {}", on.kind.as_str(), on.target),
    );
    Ok(Reply::ok(ResumedView {
        kind: on.kind.as_str(),
        id: on.target,
        before: hold_name(before),
    }))
}
