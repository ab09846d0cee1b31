//! Reading one message. Whatever is wrong with it concerns that message alone.
//!
//! A message that cannot be told apart from others (no readable `id`, `account_id` or `channel`)
//! is undecodable and goes to the dead queue. One that can is a job: if a field is wrong, it ends
//! as refused, with the field's name in the reason, where its publisher will see it.

mod fields;
mod instant;

use std::borrow::Cow;

use bytes::Bytes;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::domain::{
    AccountId, Channel, Decoded, Field, Hint, Job, JobHead, JobId, LaneHints, Payload, Region,
    UnrecognisedHints, check_recipient, normalise_number, normalise_sender,
};
use crate::gates::quiet_hours::parse_zone;
use fields::{Fields, Value, is_sound};
use instant::read_instant;

/// The largest message that is read, in bytes.
pub const MAX_PAYLOAD: usize = lanekeeper_client::MAX_JOB_BYTES;

/// The longest id of a campaign, journey or batch, in bytes.
const MAX_GROUP_ID_BYTES: usize = lanekeeper_client::MAX_GROUP_ID_BYTES;

/// The longest channel name that an event repeats, in characters.
const MAX_CHANNEL_ECHO: usize = 32;

/// What reading a message gave, and what is to be counted of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoding {
    /// The job, or why there is none.
    pub decoded: Decoded,
    /// Lane hints that were there and not understood.
    pub hints: UnrecognisedHints,
}

/// Reads one message. Numbers without a country code are taken for numbers of `default_region`.
#[must_use]
pub fn decode(payload: Bytes, default_region: Option<Region>) -> Decoding {
    let payload = Payload::new(payload);
    match Fields::of(payload.as_bytes())
        .and_then(|fields| Identity::of(&fields).map(|id| (fields, id)))
    {
        Ok((fields, identity)) => {
            let hints = fields.lane_hints();
            let unrecognised = hints.unrecognised();
            let decoded = Reading::decode(&fields, identity, hints, default_region, &payload);
            Decoding {
                decoded,
                hints: unrecognised,
            }
        }
        Err(detail) => Decoding {
            decoded: Decoded::Undecodable { detail, payload },
            hints: UnrecognisedHints::default(),
        },
    }
}

/// What tells a job apart from others. Without it a message is undecodable.
struct Identity<'a> {
    id: JobId,
    account: AccountId,
    channel: Cow<'a, str>,
}

impl<'a> Identity<'a> {
    fn of(fields: &Fields<'a>) -> Result<Self, String> {
        let required = |field: Field| match fields.get(field) {
            Value::Text(text) => Ok(text),
            Value::Absent => Err(format!("`{}` is missing", field.as_str())),
            Value::BrokenText => Err(format!("`{}` is not a sound text", field.as_str())),
            Value::Object(_) | Value::Other => Err(format!("`{}` is not a string", field.as_str())),
        };
        let id = required(Field::Id)?;
        let account = required(Field::AccountId)?;
        let channel = required(Field::Channel)?;
        Ok(Self {
            id: JobId::parse(&id).map_err(|error| format!("`id`: {error}"))?,
            account: AccountId::parse(&account)
                .map_err(|error| format!("`account_id`: {error}"))?,
            channel,
        })
    }
}

/// Reads the remaining fields and remembers the first that is wrong.
struct Reading<'f, 'a> {
    fields: &'f Fields<'a>,
    wrong: Option<(Field, String)>,
}

impl<'f, 'a> Reading<'f, 'a> {
    fn decode(
        fields: &'f Fields<'a>,
        identity: Identity<'a>,
        hints: LaneHints,
        default_region: Option<Region>,
        payload: &Payload,
    ) -> Decoded {
        let mut reading = Self {
            fields,
            wrong: None,
        };
        if let Some(field) = fields.repeated {
            reading.reject(field, "expected once");
        }
        let channel = reading.channel(&identity.channel);
        let to = reading.recipient(channel, default_region);
        let from = reading
            .line(Field::From)
            .map(|from| normalise_sender(&from).into());
        let service_id = reading.name(Field::ServiceId);
        reading.content();
        let head = reading.head(identity, channel, hints);
        let category = reading.boxed(Field::Category);
        let recipient_zone = reading.time_zone();
        let not_before = reading.instant(Field::NotBefore);
        let expires_at = reading.instant(Field::ExpiresAt);
        match (reading.wrong, channel, to) {
            (None, Some(channel), Some(to)) => Decoded::Job(Box::new(Job {
                head,
                channel,
                to,
                from,
                service_id,
                category,
                recipient_zone,
                not_before,
                expires_at,
                payload: payload.clone(),
            })),
            (wrong, ..) => {
                let (field, detail) = wrong.unwrap_or((Field::To, "expected a recipient".into()));
                Decoded::Invalid {
                    head: Box::new(head),
                    field,
                    detail,
                }
            }
        }
    }

    fn reject(&mut self, field: Field, expected: impl Into<String>) {
        if self.wrong.is_none() {
            self.wrong = Some((field, expected.into()));
        }
    }

    fn text(&mut self, field: Field) -> Option<Cow<'a, str>> {
        match self.fields.get(field) {
            Value::Absent => None,
            Value::Text(text) => Some(text),
            Value::BrokenText => {
                self.reject(
                    field,
                    "expected a text without NUL and without lone surrogates",
                );
                None
            }
            Value::Object(_) | Value::Other => {
                self.reject(field, "expected a string");
                None
            }
        }
    }

    /// A text that ends up in an address or a command, where a line break would start another header.
    fn line(&mut self, field: Field) -> Option<Cow<'a, str>> {
        let text = self.text(field)?;
        if text.chars().any(char::is_control) {
            self.reject(field, "expected a text without control characters");
        }
        Some(text)
    }

    fn boxed(&mut self, field: Field) -> Option<Box<str>> {
        self.text(field).map(std::convert::Into::into)
    }

    /// A name that something is looked up by: blanks around it must be no way past that, and it is absent
    /// where there is nothing else. Batch files read it so, too.
    fn name(&mut self, field: Field) -> Option<Box<str>> {
        bare(&self.text(field)?)
    }

    /// What a job belongs to. Operators must be able to name it: what they can neither pause nor
    /// cancel must not be sent.
    fn group(&mut self, field: Field) -> Option<Box<str>> {
        let id = bare(&self.line(field)?)?;
        if id.len() > MAX_GROUP_ID_BYTES {
            self.reject(
                field,
                format!("expected at most {MAX_GROUP_ID_BYTES} bytes"),
            );
        }
        Some(id)
    }

    fn channel(&mut self, name: &str) -> Option<Channel> {
        let channel = Channel::parse(name);
        if channel.is_none() {
            let known = Channel::ALL.map(Channel::as_str).join(", ");
            self.reject(Field::Channel, format!("expected one of {known}"));
        }
        channel
    }

    fn recipient(
        &mut self,
        channel: Option<Channel>,
        default_region: Option<Region>,
    ) -> Option<Box<str>> {
        let Some(to) = self.line(Field::To) else {
            self.reject(Field::To, "expected a recipient");
            return None;
        };
        if channel.is_some_and(Channel::is_phone) {
            return match normalise_number(&to, default_region) {
                Ok(number) => Some(number.into()),
                Err(error) => {
                    self.reject(Field::To, error.to_string());
                    None
                }
            };
        }
        if let Err(error) = channel.map_or(Ok(()), |channel| check_recipient(channel, &to)) {
            self.reject(Field::To, error.to_string());
        }
        Some(to.trim().into())
    }

    /// The parts that only the carrier reads: their kinds are checked, their text is not copied.
    fn content(&mut self) {
        self.text(Field::Body);
        for field in [Field::Content, Field::Metadata] {
            match self.fields.get(field) {
                Value::Absent => {}
                Value::Object(object) if is_sound(object) => {}
                Value::Object(_) => {
                    self.reject(
                        field,
                        "expected texts without NUL and without lone surrogates",
                    );
                }
                Value::Text(_) | Value::BrokenText | Value::Other => {
                    self.reject(field, "expected an object");
                }
            }
        }
    }

    fn head(
        &mut self,
        identity: Identity<'_>,
        channel: Option<Channel>,
        hints: LaneHints,
    ) -> JobHead {
        let (lane, lane_rule) = hints.resolve();
        let echo = || {
            identity
                .channel
                .chars()
                .take(MAX_CHANNEL_ECHO)
                .collect::<String>()
        };
        JobHead {
            id: identity.id,
            account: identity.account,
            channel: channel.map_or_else(
                || Cow::Owned(echo()),
                |channel| Cow::Borrowed(channel.as_str()),
            ),
            lane,
            lane_rule,
            origin: match hints.origin {
                Hint::Known(origin) => Some(origin),
                Hint::Absent | Hint::Unrecognised => None,
            },
            enqueued_at: self.instant(Field::EnqueuedAt),
            campaign_id: self.group(Field::CampaignId),
            journey_id: self.group(Field::JourneyId),
            batch_id: self.group(Field::BatchId),
        }
    }

    fn instant(&mut self, field: Field) -> Option<Timestamp> {
        let text = self.text(field)?;
        let instant = read_instant(&text);
        if instant.is_none() {
            self.reject(
                field,
                "expected an RFC 3339 instant, such as 2026-01-31T09:00:00.000Z",
            );
        }
        instant
    }

    fn time_zone(&mut self) -> Option<TimeZone> {
        let name = self.text(Field::RecipientTimezone)?;
        let zone = parse_zone(&name);
        if let Err(error) = zone {
            self.reject(Field::RecipientTimezone, error.to_string());
        }
        zone.ok()
    }
}

/// A name without the blanks around it, if anything is left.
fn bare(name: &str) -> Option<Box<str>> {
    let name = name.trim();
    (!name.is_empty()).then(|| name.into())
}

#[cfg(test)]
mod tests;
