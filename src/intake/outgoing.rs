//! Messages as they are published.
//!
//! They carry a delivery mode, a content type, an id and our own headers, and nothing that was
//! received: a copied `x-death` header can stop dead-lettering on the whole broker, a copied
//! `expiration` can lose the job, and a copied `user_id` is refused. Only a dead message that moves
//! to the end of its own queue keeps what it came with, those aside.

use std::collections::BTreeMap;

use lanekeeper_client::wire::Message;
use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable, ShortString};

use crate::dispatch::ports::{DeadLetter, EventBatch, Requeue};
use crate::domain::{Job, JobHead, JobHeaders, Payload};

use super::names::Names;

/// Written to disk by the broker.
const PERSISTENT: u8 = 2;

/// The longest `x-detail`, in bytes.
const LONGEST_DETAIL: usize = 500;

/// The key of a message of which not even the account is known.
const UNKNOWN_KEY: &str = "transactional.unknown";

/// Headers that belong to one stay in one queue, or that would send copies elsewhere.
const NOT_KEPT: [&str; 4] = ["x-delivery-count", "x-acquired-count", "CC", "BCC"];

/// A message to publish.
#[derive(Debug)]
pub struct Outgoing {
    /// The exchange; empty for the default one, whose keys are names of queues.
    pub exchange: ShortString,
    /// The routing key.
    pub key: ShortString,
    /// Whether the broker must say so when no queue is bound there.
    pub mandatory: bool,
    /// To tell its return from others; a job's id where it is a job.
    pub message_id: Option<ShortString>,
    /// Our own headers.
    pub headers: FieldTable,
    /// What a message that is about another one keeps of it, or says of it: mode, headers and id
    /// are set over it.
    pub basis: BasicProperties,
    /// The body.
    pub body: Body,
}

/// A body, shared with whoever else holds the job or made for this message.
#[derive(Debug)]
pub enum Body {
    /// A job's message, as it was received.
    Job(Payload),
    /// Anything else.
    Made(Vec<u8>),
}

impl Body {
    /// The bytes to publish.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Job(payload) => payload.as_bytes(),
            Self::Made(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for Body {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl Outgoing {
    /// A new job.
    #[must_use]
    pub fn job(names: &Names, job: &Job) -> Self {
        Self::to_send(names, Some(&job.head), job.payload.clone())
    }

    /// A message for the publishers' exchange, as any publisher sends it. Without a head it goes
    /// to no account, by way of the exchange for what names no lane.
    #[must_use]
    pub fn to_send(names: &Names, head: Option<&JobHead>, payload: Payload) -> Self {
        Self {
            exchange: names.send(),
            key: head.map_or_else(
                || UNKNOWN_KEY.into(),
                |head| Names::job_key(head.lane, &head.account),
            ),
            mandatory: true,
            message_id: head.map(|head| head.id.as_str().into()),
            headers: FieldTable::default(),
            basis: BasicProperties::default(),
            body: Body::Job(payload),
        }
    }

    /// A job on its way back.
    #[must_use]
    pub fn requeue(names: &Names, job: Requeue) -> Self {
        Self {
            exchange: names.way_back(job.lane, job.route),
            key: Names::job_key(job.lane, &job.account),
            mandatory: true,
            message_id: Some(job.id.as_str().into()),
            headers: job_headers(&job.headers),
            basis: BasicProperties::default(),
            body: Body::Job(job.payload),
        }
    }

    /// An undecodable message. It has no id: of two that come back nothing tells them apart, and
    /// both count as returned, which is what they are.
    #[must_use]
    pub fn dead(names: &Names, letter: DeadLetter) -> Self {
        let mut headers = FieldTable::default();
        headers.insert("x-reason".into(), text(letter.reason));
        headers.insert("x-detail".into(), text(cut(&letter.detail, LONGEST_DETAIL)));
        let seconds = u64::try_from(letter.at.as_second()).unwrap_or_default();
        Self {
            exchange: ShortString::default(),
            key: names.dead(),
            mandatory: true,
            message_id: None,
            headers,
            basis: BasicProperties::default().with_timestamp(seconds),
            body: Body::Job(letter.payload),
        }
    }

    /// A dead message on its way to the end of its own queue, with what it came with. A copied
    /// `expiration` would lose it, and a copied `user_id` be refused.
    #[must_use]
    pub fn dead_again(names: &Names, received: &BasicProperties, payload: Payload) -> Self {
        let headers = received.headers().iter().flatten();
        let headers = headers.filter(|(name, _)| !NOT_KEPT.contains(&name.as_str()));
        let headers: BTreeMap<_, _> = headers.map(|(k, v)| (k.clone(), v.clone())).collect();
        Self {
            exchange: ShortString::default(),
            key: names.dead(),
            mandatory: true,
            message_id: received.message_id().clone(),
            headers: headers.into(),
            basis: kept(received),
            body: Body::Job(payload),
        }
    }

    /// Outcome events. Not mandatory: nobody has to listen.
    #[must_use]
    pub fn events(names: &Names, batch: EventBatch) -> Self {
        Self {
            exchange: names.outcomes(),
            key: Names::outcome_key(batch.outcome, &batch.account),
            mandatory: false,
            message_id: None,
            headers: FieldTable::default(),
            basis: BasicProperties::default(),
            body: Body::Made(batch.body),
        }
    }

    /// Its properties.
    #[must_use]
    pub fn properties(&self) -> BasicProperties {
        let content_type = self.basis.content_type().clone();
        let properties = self
            .basis
            .clone()
            .with_delivery_mode(PERSISTENT)
            .with_content_type(content_type.unwrap_or_else(|| "application/json".into()))
            .with_headers(self.headers.clone());
        match &self.message_id {
            Some(id) => properties.with_message_id(id.clone()),
            None => properties,
        }
    }

    /// What is handed to the broker.
    #[must_use]
    pub fn into_message(self) -> Message<Body> {
        Message {
            properties: self.properties(),
            exchange: self.exchange,
            key: self.key,
            mandatory: self.mandatory,
            body: self.body,
        }
    }
}

/// The properties that say something of a message, whatever queue it is in.
fn kept(received: &BasicProperties) -> BasicProperties {
    let mut kept = BasicProperties::default();
    if let Some(content_type) = received.content_type() {
        kept = kept.with_content_type(content_type.clone());
    }
    if let Some(encoding) = received.content_encoding() {
        kept = kept.with_content_encoding(encoding.clone());
    }
    if let Some(timestamp) = received.timestamp() {
        kept = kept.with_timestamp(*timestamp);
    }
    if let Some(correlation) = received.correlation_id() {
        kept = kept.with_correlation_id(correlation.clone());
    }
    if let Some(reply_to) = received.reply_to() {
        kept = kept.with_reply_to(reply_to.clone());
    }
    if let Some(kind) = received.kind() {
        kept = kept.with_type(kind.clone());
    }
    if let Some(app) = received.app_id() {
        kept = kept.with_app_id(app.clone());
    }
    kept
}

fn job_headers(headers: &JobHeaders) -> FieldTable {
    let mut table = FieldTable::default();
    let mut set = |name: &str, value: i64| {
        table.insert(name.into(), AMQPValue::LongLongInt(value));
    };
    set(JobHeaders::ATTEMPT, headers.attempts.into());
    set(JobHeaders::SHEDS, headers.sheds.into());
    let instants = [
        (JobHeaders::ENQUEUED_MS, headers.enqueued_ms),
        (JobHeaders::ADMITTED_MS, headers.admitted_ms),
    ];
    for (name, instant) in instants {
        if let Some(millis) = instant.and_then(|millis| i64::try_from(millis).ok()) {
            set(name, millis);
        }
    }
    table
}

fn text(value: &str) -> AMQPValue {
    AMQPValue::LongString(value.into())
}

/// The beginning of a text, cut between characters.
fn cut(text: &str, longest: usize) -> &str {
    let mut end = longest.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests;
