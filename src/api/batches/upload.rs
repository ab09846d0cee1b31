//! `POST /api/v1/batches`.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use tokio::time::{Instant, sleep};

use super::content::Content;
use super::parameters::{BatchParameters, Wanted};
use super::receive::{Incoming, refused};
use super::run::{NoRun, Ran, Run, Why};
use super::view::QueuedBatch;
use crate::accounts::keys::KeyScope;
use crate::api::app::App;
use crate::api::auth::{Caller, unauthorised};
use crate::api::error::{ApiError, ApiResult, Code};
use crate::api::outbox::AnyOutbox;
use crate::api::places;
use crate::api::query::Query;
use crate::api::reply::{Envelope, ErrorEnvelope, Reply};
use crate::batch::{Batch, BatchFile, BatchId};
use crate::digest::Digest;
use crate::domain::AccountId;
use crate::enqueueing::{Mark, options_digest};
use crate::uploads::{Contents, Difference, Upload};

/// How soon an upload may be sent again that the server could not bring to its end, in seconds.
const AGAIN_AFTER: u64 = 5;

/// How long a broker that is away is waited for before an upload is taken, and how often it is looked.
const BROKER_WITHIN: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(50);

/// A name that no batch was uploaded under, to see whether the database answers.
const NOBODY: &str = "-";

/// Send a batch
///
/// A file of messages, one per row: CSV with a header line, or JSON, one object per line; or one JSON
/// array of at most 1,000 messages. It is read through as a whole before anything is queued. Then its
/// good rows are queued, and the answer says what became of all of them; a large batch takes a while,
/// at some 20,000 rows a second. Rows that are no messages are listed by their numbers, and keep no
/// other from being queued.
///
/// The messages are marketing unless a row or `priority` says otherwise, whatever the key's origin, and
/// nothing of the account's budget is used until they are sent.
///
/// The same upload again is safe, with and without `batch_id`: it goes on where an earlier one stopped,
/// and a batch that is queued already is not queued again. What was queued is queued whether or not
/// the client still waits for the answer.
///
/// # Errors
/// What a client is told.
#[utoipa::path(
    post,
    path = "/api/v1/batches",
    tag = "batches",
    operation_id = "uploadBatch",
    params(BatchParameters),
    request_body(
        description = "The rows. Fields of a row are those of a message, apart from what belongs to the batch: `id`, `account_id`, `origin`, `batch_id`, `enqueued_at`. Any other column of a CSV file goes to `metadata`, under its header's name",
        content(
            (String = "application/x-ndjson"),
            (String = "text/csv"),
            (Vec<Value> = "application/json"),
        ),
    ),
    responses(
        (status = 202, description = "Every good row is queued", body = Envelope<QueuedBatch>),
        (status = 400, description = "`MALFORMED_BODY`: the upload broke off, or the array is not JSON; nothing was queued", body = ErrorEnvelope),
        (status = 401, description = "`INVALID_API_KEY`: also when the key is revoked meanwhile; `details` says how far it has come then", body = ErrorEnvelope),
        (status = 403, description = "`FORBIDDEN`: the key has not the scope `send`", body = ErrorEnvelope),
        (status = 408, description = "`REQUEST_TIMEOUT`: nothing came for 30 seconds, or less than 64 KiB in 10 seconds on the average behind them, or the upload took longer than an hour; nothing was queued", body = ErrorEnvelope),
        (status = 409, description = "`CONFLICT`: `details.reason` is `in_progress` while another upload of the batch is at work, `other_content` or `other_parameters` where it was uploaded with others before", body = ErrorEnvelope),
        (status = 413, description = "`PAYLOAD_TOO_LARGE`: too many bytes, or with `details.limit_type` of `rows` more than 5,000,000 rows; nothing was queued", body = ErrorEnvelope),
        (status = 415, description = "`UNSUPPORTED_MEDIA_TYPE`", body = ErrorEnvelope),
        (status = 422, description = "`VALIDATION_ERROR`: a parameter cannot be right, or the file as a whole: its encoding, its header line, its quotes; nothing was queued", body = ErrorEnvelope),
        (status = 429, description = "`RATE_LIMIT_EXCEEDED`: too many requests, or uploads at one time", body = ErrorEnvelope),
        (status = 503, description = "`SERVICE_UNAVAILABLE`: where `details.complete_to_row` is there, everything up to that row is queued, and the same upload again goes on behind it", body = ErrorEnvelope),
    ),
    security(("api_key" = [])),
)]
pub async fn upload_batch(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    parameters: ApiResult<Query<BatchParameters>>,
    body: Body,
) -> ApiResult<Reply<QueuedBatch>> {
    let incoming = Incoming::new(&headers, body);
    let (content, wanted, place) = prepare(&app, &caller, &headers, parameters).await?;
    let largest = app.batches.limits.largest;
    let file = incoming.file(&app, &caller, content, largest).await?;
    let run = run(&app, &caller, &wanted, file, place)?;
    let account = run.batch.account.clone();
    let id = run.batch.id.clone();
    // Whoever asks may go away; what was received as a whole goes on to its end.
    let ran = app.tasks.spawn(run.run()).await;
    let ran = ran.map_err(|error| {
        tracing::error!(%error, "a batch has broken down");
        ApiError::new(Code::InternalError, "something is wrong in here")
    })?;
    match ran.map_err(not_begun)? {
        Ran::Finished {
            mark,
            already_queued,
        } => queued(&app, &account, &id, mark, already_queued).await,
        Ran::Before(upload) => {
            let mark = upload.mark();
            queued(&app, &account, &id, mark, mark.counts.good()).await
        }
        Ran::Busy(upload) => Err(busy(&id, &upload)),
        Ran::Other(difference) => Err(other(&id, difference)),
        Ran::Stopped { mark, why } => Err(stopped(&id, mark, &why)),
    }
}

/// What is wrong before the body was read is told before it is sent, to clients that ask for that.
async fn prepare(
    app: &App,
    caller: &Caller,
    headers: &HeaderMap,
    parameters: ApiResult<Query<BatchParameters>>,
) -> ApiResult<(Content, Wanted, places::Place<AccountId>)> {
    caller.may(KeyScope::Send)?;
    let content = Content::of(headers)?;
    let Query(parameters) = parameters?;
    let wanted = Wanted::of(&parameters, caller, app.default_region)?;
    let place = app.batches.place(&caller.account)?;
    broker_answers(&app.batches.outlet).await?;
    let name = wanted.id.as_ref().map_or(NOBODY, BatchId::as_str);
    let known = app.batches.uploads.find(&caller.account, name).await?;
    match (&wanted.id, known) {
        (Some(id), Some(upload)) if upload.busy_for.is_some() && upload.finished_at.is_none() => {
            Err(busy(id, &upload))
        }
        _ => Ok((content, wanted, place)),
    }
}

/// What cannot be queued is not received: nobody sends a gigabyte to be told so.
async fn broker_answers(outlet: &AnyOutbox) -> ApiResult<()> {
    let until = Instant::now() + BROKER_WITHIN;
    while let Some(trouble) = outlet.trouble() {
        if Instant::now() >= until {
            tracing::warn!(
                trouble,
                "an upload was not taken: the broker does not answer"
            );
            let message = "there is no connection to the broker; nothing was queued";
            return Err(ApiError::unavailable(message).retry_after(AGAIN_AFTER));
        }
        sleep(LOOK).await;
    }
    Ok(())
}

fn run(
    app: &Arc<App>,
    caller: &Caller,
    wanted: &Wanted,
    file: BatchFile,
    place: places::Place<AccountId>,
) -> ApiResult<Run> {
    let options = options_digest(file.format(), wanted.unnamed(), wanted.rows);
    let id = match &wanted.id {
        Some(id) => id.clone(),
        None => name_of(&file.digest(), &options)?,
    };
    Ok(Run {
        app: Arc::clone(app),
        key: caller.key,
        batch: Batch { ..wanted.named(id) },
        rows: wanted.rows,
        contents: Contents::new(file.digest(), options),
        file,
        place,
    })
}

/// The name of a batch that was given none: the same rows with the same parameters are the same batch.
fn name_of(content: &Digest, options: &Digest) -> ApiResult<BatchId> {
    let digest = Digest::of(format!("{content} {options}").as_bytes()).to_string();
    let name = BatchId::parse(&format!("batch_{}", &digest[..32]));
    name.map_err(|error| {
        tracing::error!(%error, "no name can be made for a batch");
        ApiError::new(Code::InternalError, "something is wrong in here")
    })
}

/// The rows are queued, whether or not those that were rejected can be read back just now.
async fn queued(
    app: &App,
    account: &AccountId,
    id: &BatchId,
    mark: Mark,
    already_queued: u64,
) -> ApiResult<Reply<QueuedBatch>> {
    let most = QueuedBatch::LISTED + 1;
    let rejections = if mark.counts.rejected == 0 {
        Vec::new()
    } else {
        let listed = app
            .batches
            .uploads
            .rejections(account, id.as_str(), 0, most);
        listed.await?
    };
    let queued = QueuedBatch::new(id.as_str(), mark, already_queued, rejections);
    Ok(Reply::accepted(queued))
}

fn not_begun(why: NoRun) -> ApiError {
    match why {
        NoRun::File(error) => refused(&error),
        NoRun::Records(error) => error.into(),
    }
}

fn busy(id: &BatchId, upload: &Upload) -> ApiError {
    let message = "another upload of this batch is at work: wait for its end, or look at the batch";
    let seconds = upload.busy_for.unwrap_or(Duration::ZERO).as_secs() + 1;
    ApiError::new(Code::Conflict, message)
        .retry_after(seconds)
        .detail("reason", "in_progress")
        .detail("batch_id", id.as_str())
        .detail("complete_to_row", upload.mark().line)
}

fn other(id: &BatchId, difference: Difference) -> ApiError {
    let (reason, message) = match difference {
        Difference::Content => (
            "other_content",
            "a batch of this name was uploaded with other rows: give new or corrected rows another \
             batch_id, because the ids of these are in use",
        ),
        Difference::Options => (
            "other_parameters",
            "a batch of this name was uploaded with other parameters: give the same, or another \
             batch_id",
        ),
    };
    ApiError::new(Code::Conflict, message)
        .detail("reason", reason)
        .detail("batch_id", id.as_str())
}

fn stopped(id: &BatchId, mark: Mark, why: &Why) -> ApiError {
    let line = mark.line;
    let error = match why {
        Why::Revoked => unauthorised(),
        Why::TakenOver => {
            let message = "another upload of this batch has taken over";
            ApiError::new(Code::Conflict, message)
                .retry_after(AGAIN_AFTER)
                .detail("reason", "in_progress")
        }
        Why::Broker(reason) => unfinished(line, &format!("{reason}, for too long")),
        Why::File(reason) => unfinished(line, &format!("the upload cannot be read back: {reason}")),
        Why::Records(error) => unfinished(line, &format!("{error}, for too long")),
        Why::Stopping => unfinished(line, "the server is stopping"),
    };
    error
        .detail("batch_id", id.as_str())
        .detail("complete_to_row", line)
        .detail("rows", mark.counts.rows())
        .detail("accepted", mark.counts.good())
        .detail("duplicates", mark.counts.duplicates)
        .detail("rejected", mark.counts.rejected)
}

fn unfinished(line: u64, why: &str) -> ApiError {
    let message = format!(
        "{why}; everything up to row {line} is queued, and the same upload again goes on behind it"
    );
    ApiError::unavailable(message).retry_after(AGAIN_AFTER)
}
