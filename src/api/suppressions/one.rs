//! `GET` and `DELETE /api/v1/suppressions/{recipient}`.

use std::sync::Arc;

use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;

use super::scope::{ScopeName, recipient_of, scope_of};
use super::view::{RemovedView, SuppressionView};
use crate::accounts::keys::KeyScope;
use crate::api::answers::ReadErrors;
use crate::api::app::App;
use crate::api::audit::audit;
use crate::api::auth::Caller;
use crate::api::error::{ApiError, ApiResult};
use crate::api::path::PathParams;
use crate::api::query::Query;
use crate::api::reply::{Envelope, ErrorEnvelope, Reply};
use crate::domain::Scope;

/// Which of a recipient's opt-outs.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Chosen {
    /// Only that of this scope: `all`, or a channel. Needed for ids that are neither a telephone
    /// number nor an e-mail address
    #[param(value_type = Option<ScopeName>)]
    channel: Option<String>,
}

const NOTHING: &str = "such opt-out";

/// Show a recipient's opt-outs
///
/// One for each scope. A message by a channel is refused if there is one for that channel or for
/// `all`.
#[utoipa::path(
    get,
    path = "/api/v1/suppressions/{recipient}",
    tag = "suppressions",
    operation_id = "showSuppression",
    params(
        ("recipient" = String, Path, description = "The recipient, percent-encoded, in any spelling: it is brought into the one form in which recipients are compared", example = "+447700900123"),
        Chosen,
    ),
    responses(
        (status = 200, description = "What the recipient has opted out of", body = Envelope<Vec<SuppressionView>>),
        (status = 404, description = "`NOT_FOUND`: the recipient has not opted out", body = ErrorEnvelope),
        ReadErrors,
    ),
    security(("api_key" = [])),
)]
pub async fn show_suppression(
    State(app): State<Arc<App>>,
    caller: Caller,
    path: PathParams,
    Query(chosen): Query<Chosen>,
) -> ApiResult<Reply<Vec<SuppressionView>>> {
    caller.may(KeyScope::Read)?;
    let (recipient, scope) = chosen.of(&app, &path)?;
    let mut found = app.store.opt_outs_of(&caller.account, &recipient).await?;
    found.retain(|one| scope.is_none_or(|scope| scope.as_str() == one.scope));
    if found.is_empty() {
        return Err(ApiError::not_found(NOTHING));
    }
    Ok(Reply::ok(
        found.into_iter().map(SuppressionView::from).collect(),
    ))
}

/// Remove a recipient's opt-outs
///
/// Of the channel that is named, or without one all of them. The recipient may be written to again:
/// only do this when the recipient wants it.
#[utoipa::path(
    delete,
    path = "/api/v1/suppressions/{recipient}",
    tag = "suppressions",
    operation_id = "removeSuppression",
    params(
        ("recipient" = String, Path, description = "The recipient, percent-encoded, in any spelling", example = "+447700900123"),
        Chosen,
    ),
    responses(
        (status = 200, description = "They are removed", body = Envelope<RemovedView>),
        (status = 404, description = "`NOT_FOUND`: there was none", body = ErrorEnvelope),
        ReadErrors,
    ),
    security(("api_key" = [])),
)]
pub async fn remove_suppression(
    State(app): State<Arc<App>>,
    caller: Caller,
    path: PathParams,
    Query(chosen): Query<Chosen>,
) -> ApiResult<Reply<RemovedView>> {
    caller.may(KeyScope::Admin)?;
    let (recipient, scope) = chosen.of(&app, &path)?;
    let scopes: Vec<Scope> = scope.into_iter().collect();
    let removed = app
        .store
        .opt_in(&caller.account, &recipient, &scopes)
        .await?;
    if removed == 0 {
        return Err(ApiError::not_found(NOTHING));
    }
    let on = scope.map_or("every scope", Scope::as_str);
    audit(&caller, "suppression.remove", on);
    Ok(Reply::ok(RemovedView { recipient, removed }))
}

impl Chosen {
    /// The recipient in its one form, and the scope that is asked for.
    fn of(&self, app: &App, path: &PathParams) -> ApiResult<(String, Option<Scope>)> {
        let scope = scope_of(self.channel.as_deref())?;
        let text = path.get("recipient")?;
        let (recipient, _) = recipient_of(app, "recipient", &text, scope)?;
        Ok((recipient, scope))
    }
}
