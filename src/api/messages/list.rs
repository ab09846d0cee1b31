//! `GET /api/v1/messages`.

use std::sync::Arc;

use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;

use super::view::MessageSummary;
use crate::accounts::keys::KeyScope;
use crate::api::answers::ReadErrors;
use crate::api::app::App;
use crate::api::auth::Caller;
use crate::api::error::{ApiError, ApiResult};
use crate::api::paging::{cursor, limit, parts, wrong_cursor};
use crate::api::query::Query;
use crate::api::reply::{Envelope, Reply};
use crate::api::store::Store;
use crate::api::texts::text_if_given;
use crate::domain::{JobId, Lane};
use crate::ledger::{self, Place, Wanted};

/// How a message that is listed can have ended.
const OUTCOMES: [&str; 5] = ["dispatched", "refused", "failed", "expired", "cancelled"];

/// Which messages.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct MessageList {
    /// `meta.next_cursor` of the page before
    cursor: Option<String>,
    /// How many at most
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u16>,
    /// Only this lane's: `transactional` or `marketing`
    #[param(inline, value_type = Option<LaneName>)]
    lane: Option<String>,
    /// Only those that ended so
    #[param(inline, value_type = Option<OutcomeName>)]
    outcome: Option<String>,
    /// Only those of this batch
    #[param(min_length = 1, max_length = 1024)]
    batch_id: Option<String>,
    /// Only those of this campaign
    #[param(min_length = 1, max_length = 1024)]
    campaign_id: Option<String>,
}

/// A lane.
#[derive(utoipa::ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(dead_code, reason = "it describes")]
enum LaneName {
    Transactional,
    Marketing,
}

/// How a message ended.
#[derive(utoipa::ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(dead_code, reason = "it describes")]
enum OutcomeName {
    Dispatched,
    Refused,
    Failed,
    Expired,
    Cancelled,
}

impl MessageList {
    fn wanted(&self) -> ApiResult<Wanted<'_>> {
        if self
            .lane
            .as_deref()
            .is_some_and(|lane| Lane::parse(lane).is_none())
        {
            let expected = "expected transactional or marketing";
            return Err(ApiError::validation("lane", None, expected));
        }
        let outcome = self.outcome.as_deref();
        if outcome.is_some_and(|outcome| !OUTCOMES.contains(&outcome)) {
            let expected = format!("expected one of {}", OUTCOMES.join(", "));
            return Err(ApiError::validation("outcome", None, expected));
        }
        Ok(Wanted {
            lane: self.lane.as_deref(),
            outcome,
            batch: text_if_given("batch_id", self.batch_id.as_deref())?,
            campaign: text_if_given("campaign_id", self.campaign_id.as_deref())?,
        })
    }

    fn behind(&self) -> ApiResult<Option<Place>> {
        let Some([settled, id]) = parts::<2>(self.cursor.as_deref())? else {
            return Ok(None);
        };
        let id = JobId::parse(&id).map_err(|_| wrong_cursor())?;
        let settled_ms = settled.parse().ok();
        // What PostgreSQL can compute with.
        let settled_ms = settled_ms.filter(|ms| (0..=ledger::NEWEST).contains(ms));
        Ok(Some(Place {
            settled_ms: settled_ms.ok_or_else(wrong_cursor)?,
            id: id.to_string(),
        }))
    }
}

/// List messages
///
/// Those that have ended, the newest first. A page may hold fewer entries than `limit`, or none,
/// although there are more: of the ledger's rows at most 2,000 are looked at for one page. The list
/// has ended when `meta.next_cursor` is null.
#[utoipa::path(
    get,
    path = "/api/v1/messages",
    tag = "messages",
    operation_id = "listMessages",
    params(MessageList),
    responses(
        (status = 200, description = "One page", body = Envelope<Vec<MessageSummary>>),
        ReadErrors,
    ),
    security(("api_key" = [])),
)]
pub async fn list_messages(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(list): Query<MessageList>,
) -> ApiResult<Reply<Vec<MessageSummary>>> {
    caller.may(KeyScope::Read)?;
    let (wanted, behind) = (list.wanted()?, list.behind()?);
    let (count, behind) = (limit(list.limit)?, behind.as_ref());
    let account = &caller.account;
    let page = match &app.store {
        Store::Memory(records) => records.ledger_page(account, wanted, behind, count),
        Store::Postgres(database) => {
            let asking = async |connection: &mut sqlx::PgConnection| {
                ledger::page(connection, account.as_str(), wanted, behind, count).await
            };
            database.ask(asking).await?
        }
    };
    let next = page
        .next
        .map(|place| cursor(&[&place.settled_ms.to_string(), &place.id]));
    let messages = page.entries.into_iter().map(MessageSummary::from);
    Ok(Reply::page(messages.collect(), next))
}
