//! A request to send, read into a job.
//!
//! What is accepted here must be accepted by every worker later. So the request becomes the very
//! message that a worker reads, and is judged by the code that reads it there; only what HTTP is
//! stricter about (unknown fields, lane hints that say nothing) is judged here.

use std::fmt;

use bytes::Bytes;
use jiff::Timestamp;
use serde::Deserializer;
use serde::de::{Deserialize, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::api::body::{broken_json, text, too_large};
use crate::api::error::{ApiError, ApiResult, Code};
use crate::digest::Digest;
use crate::domain::{
    AccountId, Channel, Decoded, Field, Job, JobId, Lane, Origin, Payload, Priority, Region,
};
use crate::intake::decode::{Decoding, MAX_PAYLOAD, decode};

/// A message to send.
///
/// At least one of `body` and `content` is needed. Null counts as absent; a field that is not
/// listed here is refused.
#[derive(Debug, serde::Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "it describes; requests are read field by field")]
pub struct MessageRequest {
    /// The recipient. On phone channels a number in international form.
    #[schema(
        example = "+447700900123",
        max_length = 1024,
        pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$"
    )]
    to: String,
    /// The sender: a number in international form, or a name or id of your own.
    #[schema(pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$")]
    from: Option<String>,
    /// The text.
    #[schema(example = "Your code is 482913", pattern = "^[^\\u0000]*$")]
    body: Option<String>,
    /// The structure, for channels that need one.
    #[schema(value_type = Option<Object>)]
    content: Option<Value>,
    /// `high` goes by the transactional lane, `low` by marketing; `normal` decides nothing.
    #[schema(value_type = Option<PrioritySchema>)]
    priority: Option<String>,
    /// Passed on to the carrier. `traffic_lane` in it (`transactional`, `marketing`) chooses the
    /// lane before anything else does.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Value>,
    /// The messaging service that it is sent through.
    #[schema(pattern = "^[^\\u0000]*$")]
    service_id: Option<String>,
    /// What kind of message it is, for frequency caps.
    #[schema(pattern = "^[^\\u0000]*$")]
    category: Option<String>,
    /// The campaign it belongs to: at most 1024 bytes.
    #[schema(max_length = 1024, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$")]
    campaign_id: Option<String>,
    /// The journey it belongs to: at most 1024 bytes.
    #[schema(max_length = 1024, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$")]
    journey_id: Option<String>,
    /// The recipient's time zone by its IANA name, for quiet hours.
    #[schema(example = "Europe/London")]
    recipient_timezone: Option<String>,
    /// The earliest instant at which it may be sent.
    #[schema(format = DateTime)]
    not_before: Option<String>,
    /// The instant from which it is worthless.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
}

/// How urgent a message is.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(dead_code, reason = "it describes")]
pub enum PrioritySchema {
    /// By the transactional lane.
    High,
    /// Decides nothing.
    Normal,
    /// By the marketing lane.
    Low,
}

/// The fields of a request.
const FIELDS: [Field; 13] = [
    Field::To,
    Field::From,
    Field::Body,
    Field::Content,
    Field::Priority,
    Field::Metadata,
    Field::ServiceId,
    Field::Category,
    Field::CampaignId,
    Field::JourneyId,
    Field::RecipientTimezone,
    Field::NotBefore,
    Field::ExpiresAt,
];

/// Fields whose values may be told back: they name no person and hold no content.
const TOLD_BACK: [Field; 8] = [
    Field::Priority,
    Field::ServiceId,
    Field::Category,
    Field::CampaignId,
    Field::JourneyId,
    Field::RecipientTimezone,
    Field::NotBefore,
    Field::ExpiresAt,
];

/// The longest value that is told back, in bytes of JSON.
const LONGEST_ECHO: usize = 200;

/// A request, its fields still as JSON.
#[derive(Debug)]
pub struct Message<'a>(Vec<(Field, &'a RawValue)>);

/// What a request does not say itself.
#[derive(Debug, Clone, Copy)]
pub struct Given<'a> {
    /// Whose key it came with.
    pub account: &'a AccountId,
    /// The key's origin.
    pub origin: Origin,
    /// The channel, from the path.
    pub channel: Channel,
    /// When it came.
    pub now: Timestamp,
    /// The country of numbers without a country code.
    pub default_region: Option<Region>,
}

impl<'a> Message<'a> {
    /// Reads a body.
    ///
    /// # Errors
    /// When it is no JSON object, or has a field twice, or one that is unknown.
    pub fn read(body: &'a [u8]) -> ApiResult<Self> {
        let text = text(body)?;
        let entries: Entries<'a> =
            serde_json::from_str(text).map_err(|error| broken_json(&error, ""))?;
        let mut fields: Vec<(Field, &RawValue)> = Vec::with_capacity(entries.0.len());
        for (name, value) in entries.0 {
            let field = Field::parse(&name).filter(|field| FIELDS.contains(field));
            let field = field.ok_or_else(|| unknown_field(&name))?;
            if fields.iter().any(|(known, _)| *known == field) {
                return Err(ApiError::validation(&name, None, "expected once"));
            }
            fields.push((field, value));
        }
        Ok(Self(fields))
    }

    /// The digest by which the same request is known again: neither the order of its fields nor
    /// blanks between them count.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let sorted: Map<String, Value> = self
            .0
            .iter()
            .map(|(field, value)| (field.as_str().to_owned(), compared(value.get())))
            .filter(|(_, value)| !value.is_null())
            .collect();
        Digest::of(Value::Object(sorted).to_string().as_bytes())
    }

    /// The job of that id.
    ///
    /// # Errors
    /// When a worker would refuse it, or its lane hints say nothing, or it is empty.
    pub fn job(&self, id: &JobId, given: Given<'_>) -> ApiResult<Box<Job>> {
        if ![Field::Body, Field::Content]
            .iter()
            .any(|field| self.has(*field))
        {
            let expected = "expected a text, or an object in `content`";
            return Err(ApiError::validation("body", None, expected));
        }
        let payload = within_limit(self.payload(id, given, &[]))?;
        let Decoding { decoded, hints } = decode(payload, given.default_region);
        let mut job = match decoded {
            Decoded::Job(job) => job,
            Decoded::Invalid { field, detail, .. } => {
                return Err(self.invalid(field, detail, given.channel));
            }
            Decoded::Undecodable { detail, .. } => {
                return Err(ApiError::new(Code::MalformedBody, detail));
            }
        };
        if let Some(field) = hints.fields().next() {
            return Err(self.unrecognised(field));
        }
        let numbers = self.numbers_as_read(&job);
        if !numbers.is_empty() {
            job.payload = Payload::new(within_limit(self.payload(id, given, &numbers))?);
        }
        Ok(job)
    }

    /// Whether it is not worthless yet.
    ///
    /// # Errors
    /// When it is at `now`.
    pub fn in_time(&self, job: &Job, now: Timestamp) -> ApiResult<()> {
        if job.is_expired(now) {
            let expected = "expected an instant in the future";
            return Err(self.wrong(Field::ExpiresAt, expected));
        }
        Ok(())
    }

    /// Recipient and sender, where they are written in another form than they were read in: how they
    /// are read depends on the settings, and workers may have others.
    fn numbers_as_read(&self, job: &Job) -> Vec<(Field, String)> {
        let read = [
            (Field::To, Some(&*job.to)),
            (Field::From, job.from.as_deref()),
        ];
        let written = |field, read: &str| -> bool {
            let value = self.value(field).map(RawValue::get);
            let value = value.and_then(|value| serde_json::from_str::<String>(value).ok());
            value.is_none_or(|value| value == read)
        };
        read.into_iter()
            .filter_map(|(field, read)| Some((field, read?)))
            .filter(|(field, read)| !written(*field, read))
            .map(|(field, read)| (field, Value::from(read).to_string()))
            .collect()
    }

    /// The message as a worker reads it, with other values for some fields.
    fn payload(&self, id: &JobId, given: Given<'_>, instead: &[(Field, String)]) -> Bytes {
        let mut json = format!(
            r#"{{"id":"{id}","account_id":"{}","channel":"{}","origin":"{}","enqueued_at":"{:.3}""#,
            given.account,
            given.channel.as_str(),
            given.origin.as_str(),
            given.now,
        );
        for (field, value) in &self.0 {
            json.push_str(",\"");
            json.push_str(field.as_str());
            json.push_str("\":");
            let other = instead.iter().find(|(other, _)| other == field);
            json.push_str(other.map_or(value.get(), |(_, other)| other));
        }
        json.push('}');
        json.into()
    }

    fn has(&self, field: Field) -> bool {
        self.value(field).is_some_and(|value| value.get() != "null")
    }

    fn value(&self, field: Field) -> Option<&'a RawValue> {
        let found = self.0.iter().find(|(known, _)| *known == field);
        found.map(|(_, value)| *value)
    }

    fn invalid(&self, field: Field, detail: String, channel: Channel) -> ApiError {
        if field == Field::To && channel.is_phone() && self.has(Field::To) {
            return ApiError::new(Code::InvalidPhoneNumber, format!("to: {detail}"))
                .detail("field", "to")
                .detail("expected", detail);
        }
        self.wrong(field, detail)
    }

    fn unrecognised(&self, field: &str) -> ApiError {
        let (field, name, known) = match field {
            "priority" => (
                Field::Priority,
                "priority",
                Priority::ALL.map(Priority::as_str).join(", "),
            ),
            _ => (
                Field::Metadata,
                "metadata.traffic_lane",
                Lane::ALL.map(Lane::as_str).join(", "),
            ),
        };
        let value = (field == Field::Priority)
            .then(|| self.echo(field))
            .flatten();
        ApiError::validation(name, value, format!("expected one of {known}"))
    }

    fn wrong(&self, field: Field, expected: impl Into<String>) -> ApiError {
        ApiError::validation(field.as_str(), self.echo(field), expected)
    }

    /// The value that was given, where it may be told back.
    fn echo(&self, field: Field) -> Option<Value> {
        let value = self.value(field).filter(|_| TOLD_BACK.contains(&field))?;
        let short = value.get().len() <= LONGEST_ECHO;
        serde_json::from_str(value.get()).ok().filter(|_| short)
    }
}

fn within_limit(payload: Bytes) -> ApiResult<Bytes> {
    if payload.len() > MAX_PAYLOAD {
        return Err(too_large(MAX_PAYLOAD));
    }
    Ok(payload)
}

/// The longest name, in bytes, that may be a misspelt one: comparing long ones takes long.
const LONGEST_MISSPELT: usize = 32;

fn unknown_field(name: &str) -> ApiError {
    let known = FIELDS.map(Field::as_str);
    let compared = known.iter().filter(|_| name.len() <= LONGEST_MISSPELT);
    let nearest = compared
        .map(|known| (strsim::damerau_levenshtein(known, name), *known))
        .min()
        .filter(|(distance, _)| *distance <= 2);
    let expected = match nearest {
        Some((_, nearest)) => format!("no such field; did you mean {nearest}?"),
        None => format!("no such field; expected one of {}", known.join(", ")),
    };
    let shown: String = name.chars().take(64).collect();
    ApiError::validation(&shown, None, expected)
}

/// The entries of an object, in order, repeated ones included.
struct Entries<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Entries<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntriesVisitor)
    }
}

struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Entries<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Entries(entries))
    }
}

/// A field's value as it is compared. What is too deep or too large to be read, or would not be the same
/// when it is written again, counts as it is written.
fn compared(written: &str) -> Value {
    match serde_json::from_str(written) {
        Ok(read @ Value::String(_)) => read,
        Ok(read) if is_whole(written, &read) => read,
        _ => Value::String(written.to_owned()),
    }
}

/// Whether nothing was rounded or left out in reading: a number of too many digits, a name that is there
/// twice. Only the order of names and the blanks between them may be others.
fn is_whole(written: &str, read: &Value) -> bool {
    let characters = |text: &str| {
        let mut counts = [0_u32; 256];
        let bytes = text.bytes().filter(|byte| !byte.is_ascii_whitespace());
        bytes.for_each(|byte| counts[usize::from(byte)] += 1);
        counts
    };
    characters(written) == characters(&read.to_string())
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
