//! `POST /api/v1/messages/{channel}`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::IntoParams;

use super::answer::{Accepted, error_of, with_rate};
use super::first_answers::{FirstAnswer, FirstAnswers, Known};
use super::key::{IdempotencyKey, derived_id, random_id};
use super::request::{Given, Message, MessageRequest};
use super::settled::{Came, No, Settled, Taken};
use crate::accounts::keys::KeyScope;
use crate::activity::Count;
use crate::api::app::App;
use crate::api::auth::Caller;
use crate::api::body::JsonBytes;
use crate::api::dry_run::{JudgementView, dry_run};
use crate::api::error::{ApiError, ApiResult, Code};
use crate::api::path::PathParams;
use crate::api::query::Query;
use crate::api::reply::{Envelope, ErrorEnvelope, Reply};
use crate::api::texts::channel_of;
use crate::digest::Digest;
use crate::domain::Job;
use crate::gates::quiet_details;

/// Says that an answer was given before.
static REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// Send one message
///
/// Answered as soon as the broker has stored the message. What would be turned away later is turned
/// away now: opt-outs, pauses, quiet hours, frequency caps and ceilings are asked before it is queued.
///
/// With an `Idempotency-Key` a request can be repeated without sending twice. Without one, a repeated
/// request is a second message.
///
/// # Errors
/// What a client is told.
#[utoipa::path(
    post,
    path = "/api/v1/messages/{channel_or_id}",
    tag = "messages",
    operation_id = "sendMessage",
    params(
        ("channel_or_id" = ChannelName, Path, description = "How it is sent"),
        SendOptions,
        ("Idempotency-Key" = Option<String>, Header, description = "What you call this request by: 1 to 255 visible ASCII characters", min_length = 1, max_length = 255, pattern = "^[!-~]+$"),
    ),
    request_body(content = MessageRequest, content_type = "application/json"),
    responses(
        (status = 200, description = "With `dry_run=true`: what would become of it", body = Envelope<JudgementView>),
        (status = 202, description = "Accepted: the broker has stored it, or it waits in the database", body = Envelope<Accepted>, headers(
            ("X-RateLimit-Limit" = u32, description = "The lane's ceiling, in messages per second"),
            ("X-RateLimit-Remaining" = u32, description = "What is left of it in this window"),
            ("X-RateLimit-Reset" = u64, description = "When the window ends, in seconds since 1970"),
            ("Idempotent-Replayed" = bool, description = "`true`: the answer that this Idempotency-Key got first"),
        )),
        (status = 400, description = "`MALFORMED_BODY`", body = ErrorEnvelope),
        (status = 401, description = "`INVALID_API_KEY`", body = ErrorEnvelope),
        (status = 402, description = "`ACCOUNT_PAUSED`", body = ErrorEnvelope),
        (status = 403, description = "`RECIPIENT_OPTED_OUT`, `QUIET_HOURS`, `SENDING_CANCELLED`, `UNKNOWN_ACCOUNT`, or `FORBIDDEN`: the key has not the scope `send`", body = ErrorEnvelope),
        (status = 408, description = "`REQUEST_TIMEOUT`: the body did not arrive in time", body = ErrorEnvelope),
        (status = 409, description = "`IDEMPOTENCY_KEY_REUSED`: the key came with another body before", body = ErrorEnvelope),
        (status = 413, description = "`PAYLOAD_TOO_LARGE`", body = ErrorEnvelope),
        (status = 415, description = "`UNSUPPORTED_MEDIA_TYPE`", body = ErrorEnvelope),
        (status = 422, description = "`INVALID_PHONE_NUMBER`, `VALIDATION_ERROR`", body = ErrorEnvelope),
        (status = 429, description = "`RATE_LIMIT_EXCEEDED`, `FREQUENCY_CAP_EXCEEDED`: ask again after `Retry-After` seconds", body = ErrorEnvelope),
        (status = 503, description = "`SERVICE_UNAVAILABLE`: where `details.queued` is `unknown`, the message may yet be sent", body = ErrorEnvelope),
    ),
    security(("api_key" = [])),
)]
pub async fn send_message(
    State(app): State<Arc<App>>,
    caller: Caller,
    path: PathParams,
    Query(options): Query<SendOptions>,
    headers: HeaderMap,
    JsonBytes(body): JsonBytes,
) -> ApiResult<Response> {
    let is_dry = options.dry_run == Some(true);
    // What would become of a message is for keys that may see what became of messages.
    caller.may(if is_dry {
        KeyScope::Read
    } else {
        KeyScope::Send
    })?;
    // One path cannot have two names in it, and messages are shown by their ids at the same place.
    let channel = channel_of(&path.get("channel_or_id")?)?;
    let key = IdempotencyKey::of(&headers)?;
    let message = Message::read(&body)?;
    let id = match &key {
        Some(key) => {
            let endpoint = format!("messages/{}", channel.as_str());
            derived_id(&caller.account, &endpoint, key)
        }
        None => random_id()?,
    };
    let given = Given {
        account: &caller.account,
        origin: caller.origin,
        channel,
        now: app.clock.now(),
        default_region: app.default_region,
    };
    let job: Arc<Job> = message.job(&id, given)?.into();
    let in_time = message.in_time(&job, given.now);
    if is_dry {
        in_time?;
        let view = dry_run(&app, &job).await?;
        return Ok(Reply::ok(view).into_response());
    }
    let digest = key.map(|_| message.digest());
    // Whoever asks may go away; what is begun goes on to its end.
    let sending = send(Arc::clone(&app), job, digest, in_time);
    let sending = app.tasks.spawn(sending);
    sending.await.map_err(|error| {
        tracing::error!(%error, "sending has broken down");
        ApiError::new(Code::InternalError, "something is wrong in here")
    })
}

/// How to send.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SendOptions {
    /// Only say what would become of the message: nothing is sent, counted or written. Needs the scope
    /// `read`
    dry_run: Option<bool>,
}

/// A channel's name.
#[derive(Debug, utoipa::ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(missing_docs, reason = "each name is the channel")]
pub enum ChannelName {
    Sms,
    Whatsapp,
    Email,
    Rcs,
    Viber,
    Messenger,
    Line,
    Telegram,
    Push,
    Voice,
}

/// `in_time`: whether it can still be sent, as far as its own end goes. One that was accepted before
/// its end is told so again after it.
async fn send(
    app: Arc<App>,
    job: Arc<Job>,
    digest: Option<Digest>,
    in_time: ApiResult<()>,
) -> Response {
    let Some(digest) = digest else {
        if let Err(error) = in_time {
            return error.into_response();
        }
        let (settled, rate) = take(&app, &job, Came::Once).await;
        return with_rate(told(&app, settled, &job, app.clock.now()), rate);
    };
    let first_answers = app.desk.first_answers();
    let head = &job.head;
    let came = match first_answers.begin(&head.account, &head.id, digest).await {
        Ok(Known::New) => Came::First,
        Ok(Known::Begun) => Came::Again,
        Ok(Known::Answered(first)) => return replayed(&app, &job, first).await,
        Ok(Known::Other) => {
            let message = "this Idempotency-Key came with another body before";
            let error = ApiError::new(Code::IdempotencyKeyReused, message);
            return with_rate(Err(error), app.desk.rate_of(&job).await);
        }
        Err(error) => return with_rate(Err(error.into()), None),
    };
    match in_time {
        Ok(()) => send_keyed(&app, &job, digest, came).await,
        // What became of the request that came before, nobody knows.
        Err(error) if came == Came::Again => error.detail("queued", "unknown").into_response(),
        Err(error) => {
            forget(first_answers, &job).await;
            error.into_response()
        }
    }
}

/// The first answer again.
async fn replayed(app: &App, job: &Job, first: FirstAnswer) -> Response {
    let rate = app.desk.rate_of(job).await;
    let again = Accepted::of(job, first);
    let mut response = with_rate(Ok(again), rate);
    let replayed = HeaderValue::from_static("true");
    response.headers_mut().insert(&REPLAYED, replayed);
    response
}

/// Takes a message as far as it goes, and counts it for those who watch its account.
async fn take(app: &App, job: &Arc<Job>, came: Came) -> Settled {
    let (settled, rate) = app.desk.send(Arc::clone(job), came).await;
    if let Some(what) = counted(&settled) {
        let tally = app.telemetry.tally();
        tally.add(&job.head.account, job.lane(), what, 1);
    }
    (settled, rate)
}

/// What counts here; what was queued counts when a worker has sent it.
fn counted(settled: &Result<Taken, No>) -> Option<Count> {
    match settled {
        Ok(Taken::Waits { .. }) => Some(Count::Deferred),
        Err(No::Shed { limit, .. }) => Some(Count::Shed(*limit)),
        Err(No::Refused { outcome, .. }) => Count::of_end(*outcome),
        Err(No::UnknownAccount | No::AccountPaused | No::Capped { .. }) => Some(Count::Refused),
        Ok(Taken::Queued | Taken::Before)
        | Err(No::Unrecorded(_) | No::NotPublished(_) | No::Unmetered | No::Unknown) => None,
    }
}

/// Only an acceptance is kept as the first answer: all else has had no effect, so that asking again
/// tells what holds by then.
async fn send_keyed(app: &App, job: &Arc<Job>, digest: Digest, came: Came) -> Response {
    let (settled, rate) = take(app, job, came).await;
    let now = app.clock.now();
    let first_answers = app.desk.first_answers();
    match &settled {
        Ok(taken) => {
            let answer = first_answer(job, taken, now);
            note_answer(first_answers, job, digest, answer).await;
        }
        Err(No::Unknown) => {}
        Err(_) if came == Came::First => forget(first_answers, job).await,
        Err(_) => {}
    }
    with_rate(told(app, settled, job, now), rate)
}

fn first_answer(job: &Job, taken: &Taken, at: Timestamp) -> FirstAnswer {
    let waits_until = match taken {
        Taken::Waits { until, .. } => *until,
        Taken::Queued | Taken::Before => None,
    };
    FirstAnswer {
        lane: job.lane(),
        at,
        waits_until,
    }
}

/// Without the note a repeated request is known by its claim or its row in the ledger.
async fn note_answer(first_answers: &FirstAnswers, job: &Job, digest: Digest, answer: FirstAnswer) {
    let head = &job.head;
    let noted = first_answers.answered(&head.account, &head.id, digest, answer);
    if let Err(error) = noted.await {
        tracing::warn!(%error, "a first answer could not be written down");
    }
}

async fn forget(first_answers: &FirstAnswers, job: &Job) {
    let head = &job.head;
    if let Err(error) = first_answers.forget(&head.account, &head.id).await {
        tracing::warn!(%error, "a request that came to nothing could not be forgotten");
    }
}

fn told(app: &App, settled: Result<Taken, No>, job: &Job, now: Timestamp) -> ApiResult<Accepted> {
    let taken = settled.map_err(|no| with_quiet_hours(app, error_of(no, job), job, now))?;
    Ok(Accepted::of(job, first_answer(job, &taken, now)))
}

/// Whose clock decided, and by which hours.
fn with_quiet_hours(app: &App, error: ApiError, job: &Job, now: Timestamp) -> ApiError {
    if error.code() != Code::QuietHours {
        return error;
    }
    let policy = app.directory.policy(&job.head.account);
    let Some(details) = policy.and_then(|policy| quiet_details(&policy, job, now)) else {
        return error;
    };
    error
        .detail("reason", details.reason.as_str())
        .detail("local_timezone", details.local_timezone)
        .detail("window_start_local", details.window_start_local)
        .detail("window_end_local", details.window_end_local)
}
