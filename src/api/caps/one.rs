//! `GET`, `PUT` and `DELETE /api/v1/frequency-caps/{name}`.

use std::sync::Arc;

use axum::extract::State;

use super::store::{self, Put};
use super::view::{CapTerms, CapView, name_of};
use crate::accounts::keys::KeyScope;
use crate::api::answers::{ReadErrors, WriteErrors};
use crate::api::app::App;
use crate::api::audit::audit;
use crate::api::auth::Caller;
use crate::api::body::Json;
use crate::api::error::{ApiError, ApiResult, Code};
use crate::api::path::PathParams;
use crate::api::reply::{Envelope, ErrorEnvelope, Reply};

const NOTHING: &str = "cap of that name";

/// Show a frequency cap
#[utoipa::path(
    get,
    path = "/api/v1/frequency-caps/{name}",
    tag = "frequency caps",
    operation_id = "showFrequencyCap",
    params(("name" = String, Path, description = "The cap's name", pattern = "^[A-Za-z0-9_-]{1,64}$", example = "daily")),
    responses(
        (status = 200, description = "The cap", body = Envelope<CapView>),
        (status = 404, description = "`NOT_FOUND`", body = ErrorEnvelope),
        ReadErrors,
    ),
    security(("api_key" = [])),
)]
pub async fn show_cap(
    State(app): State<Arc<App>>,
    caller: Caller,
    path: PathParams,
) -> ApiResult<Reply<CapView>> {
    caller.may(KeyScope::Read)?;
    let name = name_of(path.get("name")?)?;
    let found = store::find(&app, &caller.account, &name).await?;
    let cap = found.ok_or_else(|| ApiError::not_found(NOTHING))?;
    Ok(Reply::ok(CapView::from(&cap)))
}

/// Lay a frequency cap down
///
/// A cap of that name that is there already is replaced as a whole. Every worker and every API server
/// follows within a second. What was sent before counts.
#[utoipa::path(
    put,
    path = "/api/v1/frequency-caps/{name}",
    tag = "frequency caps",
    operation_id = "putFrequencyCap",
    params(("name" = String, Path, description = "The cap's name", pattern = "^[A-Za-z0-9_-]{1,64}$", example = "daily")),
    request_body(content = CapTerms, content_type = "application/json"),
    responses(
        (status = 200, description = "It has these terms now", body = Envelope<CapView>),
        (status = 201, description = "There is such a cap now", body = Envelope<CapView>),
        (status = 409, description = "`CONFLICT`: the account has 50 caps already", body = ErrorEnvelope),
        WriteErrors,
    ),
    security(("api_key" = [])),
)]
pub async fn put_cap(
    State(app): State<Arc<App>>,
    caller: Caller,
    path: PathParams,
    Json(terms): Json<CapTerms>,
) -> ApiResult<Reply<CapView>> {
    caller.may(KeyScope::Admin)?;
    let name = name_of(path.get("name")?)?;
    let rule = terms.rule(&name)?;
    let view = CapView::from(&rule);
    let put = store::put(&app, &caller.account, rule).await?;
    if matches!(put, Put::TooMany) {
        let message = "this account has as many caps as it may have: remove one first";
        return Err(ApiError::new(Code::Conflict, message));
    }
    audit(&caller, "frequency_cap.put", name);
    Ok(match put {
        Put::Created => Reply::created(view),
        Put::Replaced | Put::TooMany => Reply::ok(view),
    })
}

/// Remove a frequency cap
#[utoipa::path(
    delete,
    path = "/api/v1/frequency-caps/{name}",
    tag = "frequency caps",
    operation_id = "removeFrequencyCap",
    params(("name" = String, Path, description = "The cap's name", pattern = "^[A-Za-z0-9_-]{1,64}$", example = "daily")),
    responses(
        (status = 200, description = "The cap that was removed", body = Envelope<CapView>),
        (status = 404, description = "`NOT_FOUND`", body = ErrorEnvelope),
        ReadErrors,
    ),
    security(("api_key" = [])),
)]
pub async fn remove_cap(
    State(app): State<Arc<App>>,
    caller: Caller,
    path: PathParams,
) -> ApiResult<Reply<CapView>> {
    caller.may(KeyScope::Admin)?;
    let name = name_of(path.get("name")?)?;
    let found = store::find(&app, &caller.account, &name).await?;
    let removed = store::remove(&app, &caller.account, &name).await?;
    let (Some(cap), true) = (found, removed) else {
        return Err(ApiError::not_found(NOTHING));
    };
    audit(&caller, "frequency_cap.remove", name);
    Ok(Reply::ok(CapView::from(&cap)))
}
