//! What the admission script answers.

use std::sync::Arc;
use std::time::Duration;

use deadpool_redis::redis::Value;

use crate::dispatch::ports::{AccountRequest, JobRequest};
use crate::domain::{Capped, Counter, Limit, SentRecord, Verdict};
use crate::meter::{StoreAnswer, StoreError};

/// Reads the answer to a request.
pub(super) fn read(reply: Value, request: &AccountRequest) -> Result<StoreAnswer, StoreError> {
    read_parts(reply, &request.jobs).ok_or(StoreError::Failed)
}

fn read_parts(reply: Value, jobs: &[JobRequest]) -> Option<StoreAnswer> {
    let Value::Array(parts) = reply else {
        return None;
    };
    let mut parts = parts.into_iter();
    let counter = Counter {
        count: u32::try_from(number(parts.next())?).unwrap_or(u32::MAX),
        window_left: Duration::from_millis(number(parts.next())?),
    };
    let at_ms = number(parts.next())?;
    let letters = text(parts.next())?;
    if letters.len() != jobs.len() {
        return None;
    }
    let verdicts = std::iter::zip(letters, jobs).map(|(letter, job)| match letter {
        b'a' | b'p' => Some(Verdict::Admitted {
            possible_duplicate: letter == b'p',
        }),
        b'k' => number(parts.next()).map(|at_ms| Verdict::AdmittedBefore { at_ms }),
        b'c' => Some(Verdict::Shed(Limit::Claim)),
        b'd' => text(parts.next()).map(|claim| Verdict::Duplicate(read_sent(&claim))),
        b'f' => read_capped(job, number(parts.next())?, number(parts.next())?),
        b'n' => Some(Verdict::Shed(Limit::Number)),
        b's' => Some(Verdict::Shed(Limit::Service)),
        b'l' => Some(Verdict::Shed(Limit::Lane)),
        _ => None,
    });
    Some(StoreAnswer {
        verdicts: verdicts.collect::<Option<_>>()?,
        counter,
        at_ms,
    })
}

fn number(part: Option<Value>) -> Option<u64> {
    match part? {
        Value::Int(number) => u64::try_from(number).ok(),
        _ => None,
    }
}

fn text(part: Option<Value>) -> Option<Vec<u8>> {
    match part? {
        Value::BulkString(text) => Some(text),
        _ => None,
    }
}

/// `place` is that of the full cap among the job's, counted from 1.
fn read_capped(job: &JobRequest, place: u64, until_ms: u64) -> Option<Verdict> {
    let index = usize::try_from(place).ok()?.checked_sub(1)?;
    let cap = job.caps.get(index)?.key.cap.clone();
    Some(Verdict::Capped(Capped { cap, until_ms }))
}

/// Reads a claim of the form `S<at>:<carrier>[:<carrier_ref>]`. Parts that cannot be read are left
/// empty: even then the job was sent, and must not be sent again.
pub(super) fn read_sent(claim: &[u8]) -> SentRecord {
    let text = String::from_utf8_lossy(claim);
    let mut parts = text.trim_start_matches('S').splitn(3, ':');
    SentRecord {
        at_ms: parts.next().and_then(|at| at.parse().ok()).unwrap_or(0),
        carrier: Arc::from(parts.next().unwrap_or_default()),
        carrier_ref: parts.next().map(Arc::from),
    }
}
