//! `GET` and `POST /api/v1/holds`.

use std::sync::Arc;

use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;

use super::view::{HoldView, NewHold};
use crate::accounts::HoldKind;
use crate::accounts::keys::KeyScope;
use crate::api::answers::{ReadErrors, WriteErrors};
use crate::api::app::App;
use crate::api::audit::audit;
use crate::api::auth::Caller;
use crate::api::body::Json;
use crate::api::error::{ApiError, ApiResult, Code};
use crate::api::paging::{cursor, cut, limit, parts, wrong_cursor};
use crate::api::query::Query;
use crate::api::reply::{Envelope, ErrorEnvelope, Reply};
use crate::dispatch::ports::Hold;

/// Which holds.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct HoldList {
    /// `meta.next_cursor` of the page before
    cursor: Option<String>,
    /// How many at most
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u16>,
}

/// List what is paused or cancelled
///
/// In the order of kinds and ids.
#[utoipa::path(
    get,
    path = "/api/v1/holds",
    tag = "holds",
    operation_id = "listHolds",
    params(HoldList),
    responses(
        (status = 200, description = "One page", body = Envelope<Vec<HoldView>>),
        ReadErrors,
    ),
    security(("api_key" = [])),
)]
pub async fn list_holds(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(list): Query<HoldList>,
) -> ApiResult<Reply<Vec<HoldView>>> {
    caller.may(KeyScope::Read)?;
    let limit = limit(list.limit)?;
    let after = parts::<2>(list.cursor.as_deref())?;
    let after = after.as_ref().map(|[kind, id]| {
        let kind = HoldKind::parse(kind).ok_or_else(wrong_cursor)?;
        Ok::<_, ApiError>((kind, &**id))
    });
    let after = after.transpose()?;
    let holds = app.store.holds(&caller.account, after, limit + 1).await?;
    let (holds, next) = cut(holds, limit, |last| {
        cursor(&[last.on.kind.as_str(), &last.on.target])
    });
    Ok(Reply::page(
        holds.into_iter().map(HoldView::from).collect(),
        next,
    ))
}

/// Pause or cancel
///
/// The account, or a campaign, journey or batch of it, in both lanes. Every worker follows with its
/// next messages. Messages of what is paused wait in the database until nothing that they belong to is
/// paused any more; messages of what is cancelled end as `cancelled`, those that wait as well. What a
/// carrier has already is not called back.
#[utoipa::path(
    post,
    path = "/api/v1/holds",
    tag = "holds",
    operation_id = "addHold",
    request_body(content = NewHold, content_type = "application/json"),
    responses(
        (status = 200, description = "It was held so already, or was paused and is cancelled now", body = Envelope<HoldView>),
        (status = 201, description = "It is held", body = Envelope<HoldView>),
        (status = 409, description = "`CONFLICT`: it is cancelled, which a pause would undo", body = ErrorEnvelope),
        WriteErrors,
    ),
    security(("api_key" = [])),
)]
pub async fn add_hold(
    State(app): State<Arc<App>>,
    caller: Caller,
    Json(new): Json<NewHold>,
) -> ApiResult<Reply<HoldView>> {
    caller.may(KeyScope::Admin)?;
    let (on, hold, reason) = new.read(&caller.account)?;
    let put = app.store.put_hold(&on, hold, reason.as_deref(), caller.key);
    let (before, found) = put.await?;
    if before > Some(hold) {
        let message = "it is cancelled, which a pause would undo: resume it first";
        return Err(ApiError::new(Code::Conflict, message));
    }
    let found = found.ok_or_else(|| ApiError::unavailable("it was lifted meanwhile"))?;
    if found.hold < hold {
        let message = "an operator has paused it: only an operator can cancel it";
        return Err(ApiError::new(Code::Forbidden, message));
    }
    let action = match hold {
        Hold::Paused => "hold.pause",
        Hold::Cancelled => "hold.cancel",
    };
    audit(
        &caller,
        action,
        format_args!("{} {}", on.kind.as_str(), on.target),
    );
    Ok(match before {
        None => Reply::created(found.into()),
        Some(_) => Reply::ok(found.into()),
    })
}
