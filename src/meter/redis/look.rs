//! A look at what an admission of a job would meet. Nothing is changed by it.

use deadpool_redis::redis::{
    AsyncConnectionConfig, Client, FromRedisValue, Pipeline, Value, cmd, pipe,
};

use super::answers::read_sent;
use super::errors;
use super::keys::Keys;
use super::options::RedisOptions;
use crate::dispatch::ports::{CapRequest, JobRequest, TargetCeiling};
use crate::domain::{AccountId, Limit, SentRecord};
use crate::meter::StoreError;

/// A job's claim at this moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimNow {
    /// Nothing stands in its way.
    Free,
    /// A try is under way.
    UnderWay,
    /// It was sent.
    Sent(SentRecord),
}

/// A frequency cap's count at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapNow {
    /// Messages within its window.
    pub counted: u32,
    /// Whether the job is one of them, so that it passes.
    pub holds_job: bool,
}

/// What an admission of a job would meet at this moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The job's claim.
    pub claim: ClaimNow,
    /// Its frequency caps, in order.
    pub caps: Vec<CapNow>,
    /// What its number has sent in the current window.
    pub number: u32,
    /// What its messaging service has sent in the current window.
    pub service: u32,
    /// What its account has sent in the current window.
    pub account: u32,
}

/// Looks at what an admission of the job would meet, over a connection of its own.
///
/// # Errors
/// When the store does not answer, or with an error.
pub async fn look(
    options: &RedisOptions,
    account: &AccountId,
    job: &JobRequest,
) -> Result<Standing, StoreError> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(options.connect_timeout))
        .set_response_timeout(Some(options.connect_timeout));
    let client = Client::open(options.url.as_str()).map_err(|_| StoreError::Failed)?;
    let connection = client.get_multiplexed_async_connection_with_config(&config);
    let mut connection = connection
        .await
        .map_err(|error| errors::of_failure(&error))?;
    let time = cmd("TIME").query_async(&mut connection).await;
    let (seconds, micros): (u64, u64) = time.map_err(|error| errors::of_failure(&error))?;
    let now = seconds * 1_000 + micros / 1_000;
    let question = question(&Keys::of(options, account.as_str()), job, now);
    let replies = question.query_async(&mut connection).await;
    let replies: Vec<Value> = replies.map_err(|error| errors::of_failure(&error))?;
    Ok(read(replies, job, now))
}

/// Claim, counters of account, number and service, and two questions for each cap.
fn question(keys: &Keys, job: &JobRequest, now: u64) -> Pipeline {
    let mut question = pipe();
    question.cmd("GET").arg(keys.claim(&job.id));
    question.cmd("GET").arg(keys.counter());
    let targets = [(Limit::Number, &job.number), (Limit::Service, &job.service)];
    for (limit, target) in targets {
        let nobody = TargetCeiling {
            target: "".into(),
            per_second: 1,
        };
        let target = target.as_ref().unwrap_or(&nobody);
        question.cmd("GET").arg(keys.target(limit, target));
    }
    for CapRequest { key, window, .. } in &job.caps {
        let window = u64::try_from(window.as_millis()).unwrap_or(u64::MAX);
        let since = format!("({}", now.saturating_sub(window));
        let key = keys.cap(key);
        question.cmd("ZCOUNT").arg(&key).arg(since).arg("+inf");
        question.cmd("ZSCORE").arg(&key).arg(job.id.as_str());
    }
    question
}

fn read(replies: Vec<Value>, job: &JobRequest, now: u64) -> Standing {
    let mut replies = replies.into_iter();
    let claim = read_claim(replies.next(), now);
    let mut counter = || value::<u32>(replies.next()).unwrap_or(0);
    let (account, number, service) = (counter(), counter(), counter());
    let mut cap = |request: &CapRequest| {
        let messages = value(replies.next()).unwrap_or(0);
        let since: Option<f64> = value(replies.next());
        let oldest =
            now.saturating_sub(u64::try_from(request.window.as_millis()).unwrap_or(u64::MAX));
        CapNow {
            counted: messages,
            #[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 fit")]
            holds_job: since.is_some_and(|since| since > oldest as f64),
        }
    };
    Standing {
        claim,
        caps: job.caps.iter().map(&mut cap).collect(),
        number,
        service,
        account,
    }
}

fn read_claim(reply: Option<Value>, now: u64) -> ClaimNow {
    let claim: Vec<u8> = value(reply).unwrap_or_default();
    match claim.first() {
        Some(b'S') => ClaimNow::Sent(read_sent(&claim)),
        Some(b'P') => {
            let text = String::from_utf8_lossy(&claim);
            let deadline = text[1..].split(':').next().and_then(|at| at.parse().ok());
            if deadline.is_some_and(|deadline: u64| deadline > now) {
                ClaimNow::UnderWay
            } else {
                ClaimNow::Free
            }
        }
        _ => ClaimNow::Free,
    }
}

/// A reply as what it should be; nothing where it is nil or something else.
fn value<T: FromRedisValue>(reply: Option<Value>) -> Option<T> {
    match reply? {
        Value::Nil => None,
        reply => T::from_redis_value(reply).ok(),
    }
}
