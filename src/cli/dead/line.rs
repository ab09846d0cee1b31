//! A dead message as JSON, for scripts.

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use crate::digest::hex;
use crate::intake::dead::Facts;

/// What is known of a message without its body.
#[derive(Debug, Serialize)]
pub(super) struct Line<'a> {
    reference: String,
    sha256: String,
    reason: Option<&'a str>,
    detail: Option<&'a str>,
    since: Option<String>,
    age_s: Option<u64>,
    size: usize,
    account_id: Option<&'a str>,
    id: Option<&'a str>,
    returns: u32,
}

impl<'a> Line<'a> {
    pub(super) fn of(facts: &'a Facts, now: Timestamp) -> Self {
        Self {
            reference: facts.digest.to_string(),
            sha256: facts.digest.in_full(),
            reason: facts.reason.as_deref(),
            detail: facts.detail.as_deref(),
            since: facts.since.map(|since| since.to_string()),
            age_s: age(facts, now).map(|age| age.as_secs()),
            size: facts.size,
            account_id: facts.account.as_deref(),
            id: facts.id.as_deref(),
            returns: facts.returns,
        }
    }
}

/// How long a message has been dead. One that says that it will be has been for no time.
pub(super) fn age(facts: &Facts, now: Timestamp) -> Option<Duration> {
    let age = now.duration_since(facts.since?);
    Some(Duration::try_from(age).unwrap_or_default())
}

/// A body as JSON: as text where it is text, else as hexadecimal digits.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum BodyLine<'a> {
    Body(&'a str),
    BodyHex(String),
}

impl<'a> BodyLine<'a> {
    pub(super) fn of(body: &'a [u8]) -> Self {
        match std::str::from_utf8(body) {
            Ok(text) => Self::Body(text),
            Err(_) => Self::BodyHex(hex(body)),
        }
    }
}
