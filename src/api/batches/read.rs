//! `GET /api/v1/batches/{batch_id}`, and the rows of it that were rejected.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use super::store::figures;
use super::view::{BatchView, Rejection};
use crate::accounts::keys::KeyScope;
use crate::api::answers::ReadErrors;
use crate::api::app::App;
use crate::api::auth::Caller;
use crate::api::error::{ApiError, ApiResult};
use crate::api::paging;
use crate::api::path::PathParams;
use crate::api::query::Query;
use crate::api::reply::{Envelope, ErrorEnvelope, Reply};
use crate::batch::BatchId;
use crate::uploads::Upload;

/// Look at a batch
///
/// How far its upload has come, and what became of its messages. The figures are counted from the
/// ledger and may be some seconds old: `outcomes.counted_at` says how old.
///
/// # Errors
/// What a client is told.
#[utoipa::path(
    get,
    path = "/api/v1/batches/{batch_id}",
    tag = "batches",
    operation_id = "getBatch",
    params(("batch_id" = String, Path, description = "Its name")),
    responses(
        (status = 200, description = "What is known of it", body = Envelope<BatchView>),
        (status = 404, description = "`NOT_FOUND`: the account has uploaded no such batch", body = ErrorEnvelope),
        ReadErrors,
    ),
    security(("api_key" = [])),
)]
pub async fn batch(
    State(app): State<Arc<App>>,
    caller: Caller,
    path: PathParams,
) -> ApiResult<Reply<BatchView>> {
    caller.may(KeyScope::Read)?;
    let id = batch_id(&path)?;
    let upload = find(&app, &caller, &id).await?;
    let (account, name) = (&caller.account, id.as_str());
    let count = async || figures(&app.batches.store, account, name, upload.created_at).await;
    let now = || app.clock.now();
    let counted = app.batches.counting.of(account, name, now, count).await?;
    let has_faded = has_faded(&upload, app.batches.limits.life, app.clock.now());
    Ok(Reply::ok(BatchView::new(
        name,
        &upload,
        counted.as_ref(),
        has_faded,
    )))
}

/// A page of rejected rows.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct RejectionsPage {
    /// `meta.next_cursor` of the page before; without it, the first page.
    #[param(pattern = "^[0-9]{1,19}$")]
    pub cursor: Option<String>,
    /// Rows of a page.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    pub limit: Option<u16>,
}

/// The rejected rows of a batch
///
/// In the order of the file, and also while it is being queued. Of a batch with more than 100,000 the
/// first ones are kept.
///
/// # Errors
/// What a client is told.
#[utoipa::path(
    get,
    path = "/api/v1/batches/{batch_id}/rejections",
    tag = "batches",
    operation_id = "listRejections",
    params(("batch_id" = String, Path, description = "Its name"), RejectionsPage),
    responses(
        (status = 200, description = "A page of them", body = Envelope<Vec<Rejection>>),
        (status = 404, description = "`NOT_FOUND`: the account has uploaded no such batch", body = ErrorEnvelope),
        ReadErrors,
    ),
    security(("api_key" = [])),
)]
pub async fn batch_rejections(
    State(app): State<Arc<App>>,
    caller: Caller,
    path: PathParams,
    Query(page): Query<RejectionsPage>,
) -> ApiResult<Reply<Vec<Rejection>>> {
    caller.may(KeyScope::Read)?;
    let id = batch_id(&path)?;
    let behind = cursor(&page)?;
    let limit = paging::limit_to(page.limit, 100, 1_000)?;
    find(&app, &caller, &id).await?;
    let uploads = &app.batches.uploads;
    let rows = uploads.rejections(&caller.account, id.as_str(), behind, u32::from(limit) + 1);
    let (rows, next) = paging::cut(rows.await?, limit, |row| row.line.to_string());
    let rows = rows.into_iter().map(Rejection::from).collect();
    Ok(Reply::page(rows, next))
}

/// What is no batch's name names none.
fn batch_id(path: &PathParams) -> ApiResult<BatchId> {
    let name = path.get("batch_id")?;
    BatchId::parse(&name).map_err(|_| ApiError::not_found("batch of that name"))
}

async fn find(app: &App, caller: &Caller, id: &BatchId) -> ApiResult<Upload> {
    let found = app
        .batches
        .uploads
        .find(&caller.account, id.as_str())
        .await?;
    found.ok_or_else(|| ApiError::not_found("batch of that name"))
}

fn cursor(page: &RejectionsPage) -> ApiResult<u64> {
    let given = page.cursor.as_deref();
    let read = given.map(|text| {
        let number = text
            .parse()
            .ok()
            .filter(|number| i64::try_from(*number).is_ok());
        number.ok_or_else(paging::wrong_cursor)
    });
    read.unwrap_or(Ok(0))
}

/// Whether the ledger may have forgotten jobs that ended soon after the batch was uploaded: whole days
/// are forgotten, so a day earlier than its rows are so old.
fn has_faded(upload: &Upload, life: Option<Duration>, now: Timestamp) -> bool {
    let Some(life) = life.and_then(|life| SignedDuration::try_from(life).ok()) else {
        return false;
    };
    let day = SignedDuration::from_hours(24);
    now.duration_since(upload.created_at) + day > life
}
