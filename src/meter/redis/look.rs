//! A look at what an admission of a job would meet. Nothing is changed by it.

use deadpool_redis::redis::{FromRedisValue, Pipeline, Value, pipe};
use tokio::time::{Instant, timeout_at};

use super::RedisStore;
use super::answers::read_sent;
use super::keys::Keys;
use super::options::RedisOptions;
use crate::dispatch::ports::{CapRequest, JobRequest, TargetCeiling};
use crate::domain::{AccountId, Limit};
use crate::meter::{CapNow, ClaimNow, Standing, StoreError};

/// Looks at what an admission of the job would meet, over a connection of its own.
///
/// # Errors
/// When the store does not answer, or with an error.
pub async fn look(
    options: &RedisOptions,
    account: &AccountId,
    job: &JobRequest,
) -> Result<Standing, StoreError> {
    let patient = RedisOptions {
        timeout: options.connect_timeout,
        ..options.clone()
    };
    let store = RedisStore::new(patient).map_err(|_| StoreError::Failed)?;
    store.look_at(account, job).await
}

impl RedisStore {
    /// Nobody's slot is held up by a look: it may take as long as connecting may.
    pub(super) async fn look_at(
        &self,
        account: &AccountId,
        job: &JobRequest,
    ) -> Result<Standing, StoreError> {
        let deadline = Instant::now() + self.options.connect_timeout;
        let looking = timeout_at(deadline, self.look_over_link(account, job));
        looking.await.unwrap_or(Err(StoreError::TimedOut))
    }

    async fn look_over_link(
        &self,
        account: &AccountId,
        job: &JobRequest,
    ) -> Result<Standing, StoreError> {
        let mut open = self.link.open().await?;
        let mut time = pipe();
        time.cmd("TIME");
        let time = open.ask_all(&time).await?;
        let (seconds, micros): (u64, u64) =
            value(time.into_iter().next()).ok_or(StoreError::Failed)?;
        let now = seconds * 1_000 + micros / 1_000;
        let keys = Keys::of(&self.options, account.as_str());
        let replies = open.ask_all(&question(&keys, job, now)).await?;
        Ok(read(replies, job, now))
    }
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
    let instant = || {
        let text = String::from_utf8_lossy(&claim[1..]);
        text.split(':').next().and_then(|at| at.parse::<u64>().ok())
    };
    match claim.first() {
        Some(b'S') => ClaimNow::Sent(read_sent(&claim)),
        Some(b'P') if instant().is_some_and(|deadline| deadline > now) => ClaimNow::UnderWay,
        Some(b'P') => ClaimNow::Unfinished,
        Some(b'A') => instant().map_or(ClaimNow::Free, |at_ms| ClaimNow::Admitted { at_ms }),
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
