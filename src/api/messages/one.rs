//! `GET /api/v1/messages/{id}`.

use std::sync::Arc;

use axum::extract::State;

use super::view::MessageView;
use crate::accounts::keys::KeyScope;
use crate::api::answers::ReadErrors;
use crate::api::app::App;
use crate::api::auth::Caller;
use crate::api::error::{ApiError, ApiResult};
use crate::api::path::PathParams;
use crate::api::reply::{Envelope, ErrorEnvelope, Reply};
use crate::api::store::Store;
use crate::domain::{AccountId, JobId};
use crate::ledger::{self, Entry, Waiting};
use crate::meter::ClaimNow;

/// Show one message
///
/// Where it is or how it ended, and what each gate said. A message is known from the moment that it
/// is accepted. Rows of a batch, and what waits in a queue for longer than claims are kept (15
/// minutes), are only known once they have ended or wait in the database.
#[utoipa::path(
    get,
    path = "/api/v1/messages/{channel_or_id}",
    tag = "messages",
    operation_id = "showMessage",
    params(("channel_or_id" = String, Path, description = "The message's id", example = "msg_5e1c0f6f2a4b4c0e9d1a7b3c8e2f4a6d")),
    responses(
        (status = 200, description = "The message", body = Envelope<MessageView>),
        (status = 404, description = "`NOT_FOUND`: nothing is known of it", body = ErrorEnvelope),
        ReadErrors,
    ),
    security(("api_key" = [])),
)]
pub async fn show_message(
    State(app): State<Arc<App>>,
    caller: Caller,
    path: PathParams,
) -> ApiResult<Reply<MessageView>> {
    caller.may(KeyScope::Read)?;
    let nothing = || ApiError::not_found("such message, or it is not known yet");
    let id = JobId::parse(&path.get("channel_or_id")?).map_err(|_| nothing())?;
    let account = &caller.account;
    let (waiting, ends) = written_down(&app, account, &id).await?;
    if let Some(entry) = decisive(ends) {
        return Ok(Reply::ok(MessageView::ended(entry)));
    }
    if let Some(row) = waiting.into_iter().next() {
        let view = MessageView::waiting(&id, row, app.default_region);
        return Ok(Reply::ok(view));
    }
    let view = on_its_way(&app, account, &id).await?;
    view.map(Reply::ok).ok_or_else(nothing)
}

/// What waits is asked for first: a message that ends meanwhile is then found in both places, and not
/// in none.
async fn written_down(
    app: &App,
    account: &AccountId,
    id: &JobId,
) -> ApiResult<(Vec<Waiting>, Vec<Entry>)> {
    let database = match &app.store {
        Store::Postgres(database) => database,
        Store::Memory(records) => {
            let waiting = records.waiting_jobs(account, id);
            let ends = records.ledger_entry(account, id).into_iter().collect();
            return Ok((waiting, ends));
        }
    };
    let asking = async |connection: &mut sqlx::PgConnection| {
        let account = Some(account.as_str());
        let waiting = ledger::waiting(connection, id.as_str(), account).await?;
        let ends = ledger::entries(connection, id.as_str(), account).await?;
        Ok((waiting, ends))
    };
    Ok(database.ask(asking).await?)
}

/// Of several ends, told on several days, the one that counts.
fn decisive(ends: Vec<Entry>) -> Option<Entry> {
    let dispatched = ends.iter().position(|end| end.outcome == "dispatched");
    let place = dispatched.or_else(|| ends.len().checked_sub(1))?;
    ends.into_iter().nth(place)
}

/// A message that is in a queue or in the hands of a worker, by its claim, or by the first answer to
/// its request.
async fn on_its_way(app: &App, account: &AccountId, id: &JobId) -> ApiResult<Option<MessageView>> {
    let claim = app.meter.claim(account, id).await;
    let known = match &claim {
        Ok(ClaimNow::Admitted { at_ms }) => {
            Some(MessageView::on_its_way(id, "queued", Some(*at_ms)))
        }
        Ok(ClaimNow::UnderWay | ClaimNow::Unfinished) => {
            Some(MessageView::on_its_way(id, "sending", None))
        }
        Ok(ClaimNow::Sent(record)) => Some(MessageView::sent(id, record)),
        Ok(ClaimNow::Free) | Err(_) => None,
    };
    if known.is_some() {
        return Ok(known);
    }
    let answered = app.desk.first_answers().find(account, id).await?;
    if let Some(answer) = answered {
        let at = u64::try_from(answer.at.as_millisecond()).ok();
        return Ok(Some(MessageView::on_its_way(id, "queued", at)));
    }
    match claim {
        Ok(_) => Ok(None),
        Err(error) => {
            tracing::warn!(%error, "a message's claim could not be looked at");
            let why = "the message has not ended, and Redis does not say whether it is on its way";
            Err(ApiError::unavailable(why))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(outcome: &str, settled_ms: i64) -> Entry {
        Entry {
            id: "j".to_owned(),
            account_id: "acme".to_owned(),
            lane: "marketing".to_owned(),
            lane_rule: "default".to_owned(),
            origin: None,
            campaign_id: None,
            journey_id: None,
            batch_id: None,
            channel: "sms".to_owned(),
            recipient: None,
            outcome: outcome.to_owned(),
            reason: None,
            detail: None,
            carrier: None,
            carrier_ref: None,
            attempts: 1,
            sheds: 0,
            admitted_as: None,
            meter: None,
            enqueued_ms: None,
            admitted_ms: None,
            settled_ms,
            next_allowed_ms: None,
        }
    }

    #[test]
    fn of_several_ends_being_sent_counts_and_else_the_last() {
        let of = |ends: &[(&str, i64)]| {
            let ends = ends.iter().map(|(outcome, at)| end(outcome, *at));
            decisive(ends.collect()).map(|end| (end.outcome, end.settled_ms))
        };
        assert_eq!(of(&[]), None);
        assert_eq!(
            of(&[("failed", 1), ("expired", 2)]),
            Some(("expired".to_owned(), 2))
        );
        let sent = of(&[("failed", 1), ("dispatched", 2), ("expired", 3)]);
        assert_eq!(sent, Some(("dispatched".to_owned(), 2)));
    }
}
