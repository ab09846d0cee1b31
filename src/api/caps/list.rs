//! `GET /api/v1/frequency-caps`.

use std::sync::Arc;

use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;

use super::store;
use super::view::CapView;
use crate::accounts::keys::KeyScope;
use crate::api::answers::ReadErrors;
use crate::api::app::App;
use crate::api::auth::Caller;
use crate::api::error::ApiResult;
use crate::api::paging::{cursor, cut, limit, parts};
use crate::api::query::Query;
use crate::api::reply::{Envelope, Reply};

/// Which caps.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct CapList {
    /// `meta.next_cursor` of the page before
    cursor: Option<String>,
    /// How many at most
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u16>,
}

/// List frequency caps
///
/// In the order of names.
#[utoipa::path(
    get,
    path = "/api/v1/frequency-caps",
    tag = "frequency caps",
    operation_id = "listFrequencyCaps",
    params(CapList),
    responses(
        (status = 200, description = "One page", body = Envelope<Vec<CapView>>),
        ReadErrors,
    ),
    security(("api_key" = [])),
)]
pub async fn list_caps(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(list): Query<CapList>,
) -> ApiResult<Reply<Vec<CapView>>> {
    caller.may(KeyScope::Read)?;
    let limit = limit(list.limit)?;
    let after = parts::<1>(list.cursor.as_deref())?;
    let after = after.as_ref().map(|[name]| &**name);
    let caps = store::page(&app, &caller.account, after, limit + 1).await?;
    let (caps, next) = cut(caps, limit, |last| cursor(&[&last.name]));
    Ok(Reply::page(caps.iter().map(CapView::from).collect(), next))
}
