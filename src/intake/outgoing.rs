//! Messages as they are published.
//!
//! They carry a delivery mode, a content type, an id and our own headers, and nothing that was
//! received: a copied `x-death` header can stop dead-lettering on the whole broker, a copied
//! `expiration` can lose the job, and a copied `user_id` is refused.

use lanekeeper_client::wire::Message;
use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable, ShortString};

use crate::dispatch::ports::{DeadLetter, EventBatch, Requeue};
use crate::domain::{Job, JobHeaders, Payload};

use super::names::Names;

/// Written to disk by the broker.
const PERSISTENT: u8 = 2;

/// The longest `x-detail`, in bytes.
const LONGEST_DETAIL: usize = 500;

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
        Self {
            exchange: names.send(),
            key: Names::job_key(job.lane(), &job.head.account),
            mandatory: true,
            message_id: Some(job.head.id.as_str().into()),
            headers: FieldTable::default(),
            body: Body::Job(job.payload.clone()),
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
        Self {
            exchange: ShortString::default(),
            key: names.dead(),
            mandatory: true,
            message_id: None,
            headers,
            body: Body::Job(letter.payload),
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
            body: Body::Made(batch.body),
        }
    }

    /// Its properties.
    #[must_use]
    pub fn properties(&self) -> BasicProperties {
        let properties = BasicProperties::default()
            .with_delivery_mode(PERSISTENT)
            .with_content_type("application/json".into())
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
mod tests {
    use super::*;
    use crate::dispatch::ports::Route;
    use crate::domain::{AccountId, JobId, Lane};

    #[test]
    fn a_job_goes_back_with_our_headers_only() {
        let names = Names::new("lk").unwrap();
        let job = Requeue {
            id: JobId::parse("j-1").unwrap(),
            account: AccountId::parse("acme").unwrap(),
            lane: Lane::Marketing,
            route: Route::Shed,
            headers: JobHeaders {
                attempts: 1,
                sheds: 2,
                enqueued_ms: Some(3),
                admitted_ms: None,
            },
            payload: Payload::new("{}"),
        };
        let message = Outgoing::requeue(&names, job);
        assert_eq!(message.exchange.as_str(), "lk.marketing.shed");
        assert_eq!(message.key.as_str(), "marketing.acme");
        assert!(message.mandatory);
        let properties = message.properties();
        let headers = properties.headers().as_ref().unwrap().inner();
        let names: Vec<_> = headers.keys().map(ShortString::as_str).collect();
        assert_eq!(names, ["lk-attempt", "lk-enqueued-ms", "lk-sheds"]);
        assert_eq!(properties.delivery_mode(), &Some(2));
        assert_eq!(properties.expiration(), &None);
        assert_eq!(properties.user_id(), &None);
    }

    #[test]
    fn a_detail_is_cut_between_characters() {
        assert_eq!(cut("äöü", 3), "ä");
        assert_eq!(cut("abc", 9), "abc");
        let names = Names::new("lk").unwrap();
        let letter = DeadLetter {
            reason: "undecodable",
            detail: "ä".repeat(1000),
            payload: Payload::new("x"),
        };
        let message = Outgoing::dead(&names, letter);
        let detail = message.headers.inner().get("x-detail").cloned();
        assert_eq!(detail, Some(text(&"ä".repeat(250))));
    }

    #[test]
    fn events_need_no_listener() {
        let names = Names::new("lk").unwrap();
        let batch = EventBatch {
            account: AccountId::parse("acme").unwrap(),
            outcome: "dispatched",
            body: b"[]".to_vec(),
        };
        let message = Outgoing::events(&names, batch);
        assert_eq!(message.key.as_str(), "dispatched.acme");
        assert!(!message.mandatory);
    }
}
