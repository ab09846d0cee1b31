//! `POST /api/v1/inbound`: what recipients reply.

use std::sync::Arc;

use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::scope::recipient_of;
use crate::accounts::keys::KeyScope;
use crate::accounts::tables::suppressions::OptOut;
use crate::api::answers::WriteErrors;
use crate::api::app::App;
use crate::api::audit::audit;
use crate::api::auth::Caller;
use crate::api::body::Json;
use crate::api::error::ApiResult;
use crate::api::reply::{Envelope, Reply};
use crate::api::send::ChannelName;
use crate::api::texts::channel_of;
use crate::domain::{Channel, Scope, Wish};

/// A message that a recipient has sent.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct InboundMessage {
    /// The channel that it came by.
    #[schema(value_type = ChannelName)]
    channel: String,
    /// Who sent it: a recipient of yours.
    #[schema(example = "+447700900123", max_length = 1024)]
    from: String,
    /// The number or id of yours that it was sent to. Not looked at: an opt-out concerns the whole
    /// account.
    #[expect(dead_code, reason = "carriers give it, and it need not be cut out")]
    to: Option<String>,
    /// What it says.
    #[schema(example = "STOP")]
    body: String,
}

/// What was done about it.
#[derive(Debug, Serialize, ToSchema)]
pub struct InboundView {
    /// `opted_out`, `opted_in`, `help` (a word that asks who writes: nothing was changed), or `none`.
    pub action: &'static str,
    /// The word that it was recognised by, of those that this server knows.
    #[schema(value_type = Option<String>)]
    pub keyword: Option<Arc<str>>,
    /// What the opt-out concerns, or concerned: `all`, or the channel.
    pub channel: Option<&'static str>,
    /// Whether anything is different now: a second STOP changes nothing.
    pub changed: bool,
    /// It speaks of stopping, but is more than one of the words: a person should read it.
    pub review: bool,
}

impl InboundView {
    const fn nothing(action: &'static str, review: bool) -> Self {
        Self {
            action,
            keyword: None,
            channel: None,
            changed: false,
            review,
        }
    }
}

/// Take in a reply
///
/// `STOP` and what else is agreed on for it writes an opt-out down, `START`, `UNSTOP` and `YES` remove
/// it. The whole message must be such a word; capitals, accents, blanks, punctuation and a "please" or
/// "thank you" make no difference. By telephone (SMS, WhatsApp, RCS, Viber, voice) it concerns every
/// channel, by any other channel that channel alone.
#[utoipa::path(
    post,
    path = "/api/v1/inbound",
    tag = "suppressions",
    operation_id = "takeInbound",
    request_body(content = InboundMessage, content_type = "application/json"),
    responses(
        (status = 200, description = "What was done", body = Envelope<InboundView>),
        WriteErrors,
    ),
    security(("api_key" = [])),
)]
pub async fn take_inbound(
    State(app): State<Arc<App>>,
    caller: Caller,
    Json(message): Json<InboundMessage>,
) -> ApiResult<Reply<InboundView>> {
    caller.may(KeyScope::Admin)?;
    let channel = channel_of(&message.channel)?;
    let (recipient, _) = recipient_of(&app, "from", &message.from, Some(Scope::Channel(channel)))?;
    let view = match app.keywords.wish(&message.body) {
        Wish::OptOut(word) => opt_out(&app, &caller, channel, recipient, word).await?,
        Wish::OptIn(word) => opt_in(&app, &caller, channel, &recipient, word).await?,
        Wish::Help => InboundView::nothing("help", false),
        Wish::Unclear => InboundView::nothing("none", true),
        Wish::Other => InboundView::nothing("none", false),
    };
    Ok(Reply::ok(view))
}

/// A number has opted out of every channel that it can be written to by; an id has only one.
const fn concerned(channel: Channel) -> Scope {
    if channel.is_phone() {
        Scope::All
    } else {
        Scope::Channel(channel)
    }
}

async fn opt_out(
    app: &App,
    caller: &Caller,
    channel: Channel,
    recipient: String,
    word: Arc<str>,
) -> ApiResult<InboundView> {
    let scope = concerned(channel);
    let opt_out = OptOut {
        recipient,
        scope,
        source: Some(format!("replied {word} by {}", channel.as_str())),
    };
    let (changed, _) = app.store.opt_out(&caller.account, opt_out).await?;
    if changed {
        audit(caller, "inbound.opt_out", scope);
    }
    Ok(InboundView {
        action: "opted_out",
        keyword: Some(word),
        channel: Some(scope.as_str()),
        changed,
        review: false,
    })
}

/// What an opt-out by this channel would have written down goes, and what else keeps this channel
/// from being used.
async fn opt_in(
    app: &App,
    caller: &Caller,
    channel: Channel,
    recipient: &str,
    word: Arc<str>,
) -> ApiResult<InboundView> {
    let scope = concerned(channel);
    let mut scopes = vec![scope];
    if scope == Scope::All {
        scopes.push(Scope::Channel(channel));
    }
    let removed = app
        .store
        .opt_in(&caller.account, recipient, &scopes)
        .await?;
    if removed > 0 {
        audit(caller, "inbound.opt_in", scope);
    }
    Ok(InboundView {
        action: "opted_in",
        keyword: Some(word),
        channel: Some(scope.as_str()),
        changed: removed > 0,
        review: false,
    })
}
