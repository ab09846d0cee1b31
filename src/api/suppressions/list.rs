//! `GET` and `POST /api/v1/suppressions`.

use std::sync::Arc;

use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;

use super::scope::{ScopeName, recipient_of, scope_of};
use super::view::{NewSuppression, SuppressionView};
use crate::accounts::keys::KeyScope;
use crate::accounts::tables::suppressions::OptOut;
use crate::api::answers::{ReadErrors, WriteErrors};
use crate::api::app::App;
use crate::api::audit::audit;
use crate::api::auth::Caller;
use crate::api::body::Json;
use crate::api::error::{ApiError, ApiResult};
use crate::api::paging::{limit, parts};
use crate::api::query::Query;
use crate::api::reply::{Envelope, Reply};
use crate::api::texts::text_if_given;

/// Which opt-outs.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SuppressionList {
    /// `meta.next_cursor` of the page before
    cursor: Option<String>,
    /// How many at most
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u16>,
    /// Only those of this scope: `all`, or a channel
    #[param(value_type = Option<ScopeName>)]
    channel: Option<String>,
}

/// List opt-outs
///
/// In the order of recipients. The list has ended when `meta.next_cursor` is null: a page of one scope
/// may have fewer entries than there is room for, or none, and not be the last.
#[utoipa::path(
    get,
    path = "/api/v1/suppressions",
    tag = "suppressions",
    operation_id = "listSuppressions",
    params(SuppressionList),
    responses(
        (status = 200, description = "One page", body = Envelope<Vec<SuppressionView>>),
        ReadErrors,
    ),
    security(("api_key" = [])),
)]
pub async fn list_suppressions(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(list): Query<SuppressionList>,
) -> ApiResult<Reply<Vec<SuppressionView>>> {
    caller.may(KeyScope::Read)?;
    let (scope, limit) = (scope_of(list.channel.as_deref())?, limit(list.limit)?);
    let after = parts::<2>(list.cursor.as_deref())?;
    let after = after
        .as_ref()
        .map(|[recipient, scope]| (&**recipient, &**scope));
    let page = app.store.opt_outs(&caller.account, scope, after, limit);
    let (found, next) = page.await?;
    Ok(Reply::page(
        found.into_iter().map(SuppressionView::from).collect(),
        next,
    ))
}

/// Write an opt-out down
///
/// From now on nothing goes to the recipient by that channel, by whatever lane: every message that is
/// not at its carrier yet is refused. An opt-out that is there already stays as it is.
#[utoipa::path(
    post,
    path = "/api/v1/suppressions",
    tag = "suppressions",
    operation_id = "addSuppression",
    request_body(content = NewSuppression, content_type = "application/json"),
    responses(
        (status = 200, description = "It was there already", body = Envelope<SuppressionView>),
        (status = 201, description = "It is written down", body = Envelope<SuppressionView>),
        WriteErrors,
    ),
    security(("api_key" = [])),
)]
pub async fn add_suppression(
    State(app): State<Arc<App>>,
    caller: Caller,
    Json(new): Json<NewSuppression>,
) -> ApiResult<Reply<SuppressionView>> {
    caller.may(KeyScope::Admin)?;
    let scope = scope_of(new.channel.as_deref())?;
    let (recipient, scope) = recipient_of(&app, "recipient", &new.recipient, scope)?;
    let source = text_if_given("source", new.source.as_deref())?;
    let opt_out = OptOut {
        recipient,
        scope,
        source: source.map(str::to_owned),
    };
    let (is_new, found) = app.store.opt_out(&caller.account, opt_out).await?;
    // Somebody else may have removed it at the same moment.
    let found = found.ok_or_else(|| ApiError::unavailable("it was removed meanwhile"))?;
    if is_new {
        audit(&caller, "suppression.add", scope);
        return Ok(Reply::created(found.into()));
    }
    Ok(Reply::ok(found.into()))
}
