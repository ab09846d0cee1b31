//! Messages as they are published.
//!
//! They carry a delivery mode, a content type, an id and our own headers, and nothing that was
//! received: a copied `x-death` header can stop dead-lettering on the whole broker, a copied
//! `expiration` can lose the job, and a copied `user_id` is refused. Only a dead message that moves
//! to the end of its own queue keeps something: why it is there, and what says what it is.

use lanekeeper_client::wire::Message;
use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable, ShortString};

use crate::dispatch::ports::{DeadLetter, EventBatch, Requeue, Route};
use crate::domain::{HotQueue, Job, JobHead, JobHeaders, Lane, Payload};

use super::names::Names;

/// Written to disk by the broker.
const PERSISTENT: u8 = 2;

/// The longest `x-detail`, in bytes.
const LONGEST_DETAIL: usize = 500;

/// The key of a message of which not even the account is known. It begins with no lane, so that no
/// queue of an account can be bound for it: every name after a lane may be an account's.
const UNKNOWN_KEY: &str = "unknown";

/// Why a message is dead, and what exactly was wrong.
const REASON: &str = "x-reason";
const DETAIL: &str = "x-detail";

/// A message to publish.
#[derive(Debug)]
pub struct Outgoing {
    /// The exchange; empty for the default one, whose keys are names of queues.
    pub exchange: ShortString,
    /// The routing key.
    pub key: ShortString,
    /// The lane by whose queue it goes, where an exchange leads to one for each lane and nothing
    /// else tells them apart.
    pub lane: Option<Lane>,
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

/// A way to queues that nothing else's queues hold up.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Way {
    /// The exchange; empty for the default one.
    pub exchange: ShortString,
    /// The lane, where the exchange leads to a queue for each.
    pub lane: Option<Lane>,
}

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.lane {
            Some(lane) => write!(f, "{}/{lane}", self.exchange),
            None => f.write_str(self.exchange.as_str()),
        }
    }
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

    /// A message for the publishers' exchange, as any publisher sends it. Without a head its key
    /// names no lane and no account, so that it falls through to the transactional lane's queue.
    #[must_use]
    pub fn to_send(names: &Names, head: Option<&JobHead>, payload: Payload) -> Self {
        Self {
            exchange: names.send(),
            key: head.map_or_else(
                || UNKNOWN_KEY.into(),
                |head| Names::job_key(head.lane, &head.account),
            ),
            lane: None,
            mandatory: true,
            message_id: head.map(|head| head.id.as_str().into()),
            headers: FieldTable::default(),
            basis: BasicProperties::default(),
            body: Body::Job(payload),
        }
    }

    /// A job that was found in an account's own queue which is given up: to where it would be
    /// published now, with what earlier rounds have noted. Its message need not be readable.
    #[must_use]
    pub fn moved(
        names: &Names,
        from: &HotQueue,
        message_id: Option<ShortString>,
        headers: &JobHeaders,
        payload: Payload,
    ) -> Self {
        Self {
            exchange: names.send(),
            key: Names::job_key(from.lane, &from.account),
            lane: None,
            mandatory: true,
            message_id,
            headers: job_headers(headers),
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
            lane: (job.route == Route::Admitted).then_some(job.lane),
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
        headers.insert(REASON.into(), text(letter.reason));
        headers.insert(DETAIL.into(), text(cut(&letter.detail, LONGEST_DETAIL)));
        let seconds = u64::try_from(letter.at.as_second()).unwrap_or_default();
        Self {
            exchange: ShortString::default(),
            key: names.dead(),
            lane: None,
            mandatory: true,
            message_id: None,
            headers,
            basis: BasicProperties::default().with_timestamp(seconds),
            body: Body::Job(letter.payload),
        }
    }

    /// A dead message on its way to the end of its own queue. Of its headers only those that say
    /// why it is dead go with it: any other may be what the broker takes for its own.
    #[must_use]
    pub fn dead_again(names: &Names, received: &BasicProperties, payload: Payload) -> Self {
        let mut headers = FieldTable::default();
        for name in [REASON, DETAIL] {
            let value = received.headers().as_ref();
            if let Some(value) = value.and_then(|headers| headers.inner().get(name)) {
                headers.insert(name.into(), value.clone());
            }
        }
        Self {
            exchange: ShortString::default(),
            key: names.dead(),
            lane: None,
            mandatory: true,
            message_id: received.message_id().clone(),
            headers,
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
            lane: None,
            mandatory: false,
            message_id: None,
            headers: FieldTable::default(),
            basis: BasicProperties::default(),
            body: Body::Made(batch.body),
        }
    }

    /// The way that it goes.
    #[must_use]
    pub fn way(&self) -> Way {
        Way {
            exchange: self.exchange.clone(),
            lane: self.lane,
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
