//! A job: one message to one recipient on one channel, as a publisher makes it.

mod json;

use std::fmt;

use jiff::Timestamp;
use serde_json::{Map, Value};
use thiserror::Error;

pub use json::{MAX_GROUP_ID_BYTES, MAX_JOB_BYTES, MAX_RECIPIENT_BYTES};

use crate::{
    AccountId, Channel, Hint, JobId, Lane, LaneHints, LaneRule, Origin, Priority, TRAFFIC_LANE,
};

/// Why a job could not be sent as it is. Holds nothing of the job but its size.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field}: {expected}")]
pub struct JobError {
    field: &'static str,
    expected: String,
}

impl JobError {
    fn new(field: &'static str, expected: impl Into<String>) -> Self {
        Self {
            field,
            expected: expected.into(),
        }
    }

    /// The field that is wrong; `job` where it is the whole.
    #[must_use]
    pub fn field(&self) -> &'static str {
        self.field
    }
}

/// A job to be published.
///
/// The setters take anything; [`Job::validate`] and publishing say what a worker would refuse. What
/// only a worker can tell, it tells in the job's outcome: whether a telephone number exists in its
/// country's plan, and whether a time zone exists.
#[derive(Clone, PartialEq)]
pub struct Job {
    id: JobId,
    account_id: AccountId,
    channel: Channel,
    to: String,
    texts: [Option<String>; OptionalText::ALL.len()],
    content: Option<Map<String, Value>>,
    metadata: Map<String, Value>,
    priority: Option<Priority>,
    origin: Option<Origin>,
    enqueued_at: Option<Timestamp>,
    not_before: Option<Timestamp>,
    expires_at: Option<Timestamp>,
}

/// The optional fields that are plain texts.
#[derive(Clone, Copy)]
enum OptionalText {
    From,
    ServiceId,
    Body,
    CampaignId,
    JourneyId,
    BatchId,
    Category,
    RecipientTimezone,
}

impl OptionalText {
    const ALL: [Self; 8] = [
        Self::From,
        Self::ServiceId,
        Self::Body,
        Self::CampaignId,
        Self::JourneyId,
        Self::BatchId,
        Self::Category,
        Self::RecipientTimezone,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::From => "from",
            Self::ServiceId => "service_id",
            Self::Body => "body",
            Self::CampaignId => "campaign_id",
            Self::JourneyId => "journey_id",
            Self::BatchId => "batch_id",
            Self::Category => "category",
            Self::RecipientTimezone => "recipient_timezone",
        }
    }
}

impl Job {
    /// A job with what every job needs.
    ///
    /// `id` is unique within the account, 1 to 128 characters of `A-Z a-z 0-9 . _ : -`. It is the
    /// idempotency key to the end of the chain, so derive it from what the message is about: the
    /// same event must make the same id. `to` is the recipient: on phone channels best in
    /// international form, such as +447700900123.
    ///
    /// # Errors
    /// [`JobError`], when `id` or `account_id` is no such identifier.
    pub fn new(
        id: &str,
        account_id: &str,
        channel: Channel,
        to: impl Into<String>,
    ) -> Result<Self, JobError> {
        Ok(Self {
            id: JobId::parse(id).map_err(|error| JobError::new("id", error.to_string()))?,
            account_id: AccountId::parse(account_id)
                .map_err(|error| JobError::new("account_id", error.to_string()))?,
            channel,
            to: to.into(),
            texts: Default::default(),
            content: None,
            metadata: Map::new(),
            priority: None,
            origin: None,
            enqueued_at: None,
            not_before: None,
            expires_at: None,
        })
    }

    fn text(mut self, field: OptionalText, text: impl Into<String>) -> Self {
        self.texts[field as usize] = Some(text.into());
        self
    }

    /// The text.
    #[must_use]
    pub fn body(self, body: impl Into<String>) -> Self {
        self.text(OptionalText::Body, body)
    }

    /// The structure, for channels that need one.
    #[must_use]
    pub fn content(mut self, content: Map<String, Value>) -> Self {
        self.content = Some(content);
        self
    }

    /// The sender: an international number, or a name or id of your own.
    #[must_use]
    pub fn from(self, sender: impl Into<String>) -> Self {
        self.text(OptionalText::From, sender)
    }

    /// The messaging service that it is sent through.
    #[must_use]
    pub fn service_id(self, service: impl Into<String>) -> Self {
        self.text(OptionalText::ServiceId, service)
    }

    /// The campaign it belongs to; repeated in its outcome.
    #[must_use]
    pub fn campaign_id(self, campaign: impl Into<String>) -> Self {
        self.text(OptionalText::CampaignId, campaign)
    }

    /// The journey it belongs to; repeated in its outcome.
    #[must_use]
    pub fn journey_id(self, journey: impl Into<String>) -> Self {
        self.text(OptionalText::JourneyId, journey)
    }

    /// The batch it belongs to; repeated in its outcome.
    #[must_use]
    pub fn batch_id(self, batch: impl Into<String>) -> Self {
        self.text(OptionalText::BatchId, batch)
    }

    /// What kind of message it is.
    #[must_use]
    pub fn category(self, category: impl Into<String>) -> Self {
        self.text(OptionalText::Category, category)
    }

    /// The recipient's time zone by its IANA name, such as Europe/Berlin.
    #[must_use]
    pub fn recipient_timezone(self, zone: impl Into<String>) -> Self {
        self.text(OptionalText::RecipientTimezone, zone)
    }

    /// How urgent it is: `high` and `low` choose the lane unless the traffic lane is named.
    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = Some(priority);
        self
    }

    /// What kind of program makes it: chooses the lane when nothing before it does.
    #[must_use]
    pub fn origin(mut self, origin: Origin) -> Self {
        self.origin = Some(origin);
        self
    }

    /// Names the lane, whatever priority and origin say (`metadata.traffic_lane`).
    #[must_use]
    pub fn traffic_lane(self, lane: Lane) -> Self {
        self.metadata(TRAFFIC_LANE, lane.as_str())
    }

    /// Adds an entry to the metadata, which is passed on to the carrier.
    #[must_use]
    pub fn metadata(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(name.into(), value.into());
        self
    }

    /// When it was made, in whole milliseconds. Set it once and keep it when publishing again: it
    /// tells a late copy from a new job.
    #[must_use]
    pub fn enqueued_at(mut self, at: Timestamp) -> Self {
        self.enqueued_at = Some(at);
        self
    }

    /// The earliest instant at which it may be sent, in whole milliseconds.
    #[must_use]
    pub fn not_before(mut self, at: Timestamp) -> Self {
        self.not_before = Some(at);
        self
    }

    /// The instant from which it is worthless, in whole milliseconds.
    #[must_use]
    pub fn expires_at(mut self, at: Timestamp) -> Self {
        self.expires_at = Some(at);
        self
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &JobId {
        &self.id
    }

    /// Its account.
    #[must_use]
    pub fn account_id(&self) -> &AccountId {
        &self.account_id
    }

    /// The lane that it goes to, by the rule that workers use.
    #[must_use]
    pub fn lane(&self) -> Lane {
        self.lane_and_rule().0
    }

    /// The lane, and the part of the rule that chose it.
    #[must_use]
    pub fn lane_and_rule(&self) -> (Lane, LaneRule) {
        let traffic_lane = match self.metadata.get(TRAFFIC_LANE) {
            None | Some(Value::Null) => Hint::Absent,
            Some(Value::String(name)) => Lane::parse(name).map_or(Hint::Unrecognised, Hint::Known),
            Some(_) => Hint::Unrecognised,
        };
        let hints = LaneHints {
            traffic_lane,
            priority: self.priority.map_or(Hint::Absent, Hint::Known),
            origin: self.origin.map_or(Hint::Absent, Hint::Known),
        };
        hints.resolve()
    }
}

/// Neither recipient nor content: a job may end up in a log line.
impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("id", &self.id)
            .field("account_id", &self.account_id)
            .field("channel", &self.channel)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
