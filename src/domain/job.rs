//! A job: one message to one recipient on one channel.

use std::borrow::Cow;

use bytes::Bytes;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{AccountId, Channel, Field, JobId, Lane, LaneRule, Origin};

/// The job's message exactly as it was received. It is kept whole, so that a job that goes back to
/// a queue is the very same job, and so that what the worker never looks at is never copied.
#[derive(Clone, PartialEq, Eq)]
pub struct Payload(Bytes);

impl Payload {
    /// Wraps a received message body.
    #[must_use]
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        Self(bytes.into())
    }

    /// The bytes as received.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The same bytes, shared.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        self.0.clone()
    }
}

/// Only the length: a payload holds recipients and bodies, which no log may show.
impl std::fmt::Debug for Payload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Payload({} bytes)", self.0.len())
    }
}

/// What is known of every job that can be told apart from others, valid or not: enough to settle
/// it and to report its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobHead {
    /// The job's id.
    pub id: JobId,
    /// The account that sends it.
    pub account: AccountId,
    /// The channel as it was spelled, which may be none that is known.
    pub channel: Cow<'static, str>,
    /// The lane that rule 1 gives.
    pub lane: Lane,
    /// The part of rule 1 that gave it.
    pub lane_rule: LaneRule,
    /// What kind of program made it, where that is known.
    pub origin: Option<Origin>,
    /// When the publisher says that it was queued.
    pub enqueued_at: Option<Timestamp>,
    /// The campaign it belongs to.
    pub campaign_id: Option<Box<str>>,
    /// The journey it belongs to.
    pub journey_id: Option<Box<str>>,
    /// The batch it belongs to.
    pub batch_id: Option<Box<str>>,
}

/// A job that can be sent.
#[derive(Clone, PartialEq, Eq)]
pub struct Job {
    /// What identifies it.
    pub head: JobHead,
    /// The channel.
    pub channel: Channel,
    /// The recipient, in normalised form.
    pub to: Box<str>,
    /// The sender, in normalised form.
    pub from: Option<Box<str>>,
    /// The messaging service that it is sent through.
    pub service_id: Option<Box<str>>,
    /// What kind of message it is, for frequency caps.
    pub category: Option<Box<str>>,
    /// Where the recipient's clock stands, if the publisher says so.
    pub recipient_zone: Option<TimeZone>,
    /// The earliest instant at which it may be sent.
    pub not_before: Option<Timestamp>,
    /// The instant from which it is worthless.
    pub expires_at: Option<Timestamp>,
    /// The message as it was received.
    pub payload: Payload,
}

/// No recipient and no content: a job may end up in a log line.
impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job")
            .field("head", &self.head)
            .field("payload", &self.payload)
            .finish_non_exhaustive()
    }
}

/// The parts of a job that only a carrier reads, borrowed from the message as it was received.
#[derive(Deserialize, Default)]
pub struct Content<'a> {
    /// The text.
    #[serde(borrow, default)]
    pub body: Option<&'a RawValue>,
    /// The structure, for channels that need one.
    #[serde(borrow, default)]
    pub content: Option<&'a RawValue>,
    /// Passed through as it is.
    #[serde(borrow, default)]
    pub metadata: Option<&'a RawValue>,
}

impl Job {
    /// The lane.
    #[must_use]
    pub fn lane(&self) -> Lane {
        self.head.lane
    }

    /// Whether the job is worthless at `now`: its `expires_at` has been reached.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|expires_at| expires_at <= now)
    }

    /// The parts for the carrier.
    ///
    /// # Errors
    /// Never for a job that was decoded from its payload: each known field is there once at most.
    pub fn content(&self) -> Result<Content<'_>, serde_json::Error> {
        serde_json::from_slice(self.payload.as_bytes())
    }

    /// The key by which a carrier recognises a second try of the same job.
    #[must_use]
    pub fn idempotency_key(&self) -> String {
        format!("{}:{}", self.head.account, self.head.id)
    }
}

/// What reading a delivery gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decoded {
    /// A job that can be sent.
    Job(Box<Job>),
    /// A job that can be told apart from others but not sent: it ends as refused.
    Invalid {
        /// What identifies it.
        head: Box<JobHead>,
        /// The field that is wrong.
        field: Field,
        /// What was expected there, for the publisher.
        detail: String,
    },
    /// Nothing that could be settled as a job: it goes to the dead queue.
    Undecodable {
        /// What was wrong, for the operator.
        detail: String,
        /// The message as it was received.
        payload: Payload,
    },
}
