//! A job as JSON, checked: what a worker would refuse is said before it is published.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{Job, JobError, OptionalText};
use crate::{Channel, normalise_address};

/// The largest job that a worker reads, in bytes of JSON: 256 KiB.
pub const MAX_JOB_BYTES: usize = 256 * 1024;

/// The longest `campaign_id`, `journey_id` or `batch_id` that a worker takes, in bytes: operators
/// pause and cancel by it.
pub const MAX_GROUP_ID_BYTES: usize = 1_024;

/// The longest recipient that a worker takes, in bytes: longer ones could not be written down as
/// opted out.
pub const MAX_RECIPIENT_BYTES: usize = 1_024;

impl Job {
    /// Says what a worker would refuse, as far as a publisher can tell.
    ///
    /// # Errors
    /// [`JobError`], which names the field.
    pub fn validate(&self) -> Result<(), JobError> {
        self.to_json().map(drop)
    }

    /// The job as it is published, checked.
    ///
    /// # Errors
    /// [`JobError`], which names the field; `job` when it has more than [`MAX_JOB_BYTES`].
    pub fn to_json(&self) -> Result<Vec<u8>, JobError> {
        self.check_texts()?;
        let json = serde_json::to_vec(&self.fields()?)
            .map_err(|error| JobError::new("job", error.to_string()))?;
        if json.len() > MAX_JOB_BYTES {
            let size = json.len();
            let expected = format!("expected at most {MAX_JOB_BYTES} bytes of JSON, not {size}");
            return Err(JobError::new("job", expected));
        }
        Ok(json)
    }

    fn check_texts(&self) -> Result<(), JobError> {
        self.check_recipient()?;
        for (field, text) in self.given_texts() {
            match field {
                OptionalText::From => check_line(field.as_str(), text)?,
                OptionalText::CampaignId | OptionalText::JourneyId | OptionalText::BatchId => {
                    check_line(field.as_str(), text)?;
                    if text.len() > MAX_GROUP_ID_BYTES {
                        let expected = format!("expected at most {MAX_GROUP_ID_BYTES} bytes");
                        return Err(JobError::new(field.as_str(), expected));
                    }
                }
                OptionalText::RecipientTimezone if text.is_empty() => {
                    let expected = "expected an IANA time zone, such as Europe/Berlin";
                    return Err(JobError::new(field.as_str(), expected));
                }
                _ => check_sound(field.as_str(), !text.contains('\0'))?,
            }
        }
        let content = self.content.iter().flatten();
        check_sound("content", content.into_iter().all(is_sound_entry))?;
        check_sound("metadata", self.metadata.iter().all(is_sound_entry))
    }

    fn check_recipient(&self) -> Result<(), JobError> {
        let to = self.to.trim();
        if to.is_empty() {
            return Err(JobError::new("to", "expected a recipient"));
        }
        if to.len() > MAX_RECIPIENT_BYTES {
            let expected = format!("expected at most {MAX_RECIPIENT_BYTES} bytes");
            return Err(JobError::new("to", expected));
        }
        check_line("to", &self.to)?;
        if self.channel == Channel::Email {
            normalise_address(to).map_err(|error| JobError::new("to", error.to_string()))?;
        }
        Ok(())
    }

    fn given_texts(&self) -> impl Iterator<Item = (OptionalText, &str)> {
        let texts = OptionalText::ALL.into_iter().zip(&self.texts);
        texts.filter_map(|(field, text)| text.as_deref().map(|text| (field, text)))
    }

    fn fields(&self) -> Result<Map<String, Value>, JobError> {
        let mut fields = Map::new();
        let mut set = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        set("id", self.id.as_str().into());
        set("account_id", self.account_id.as_str().into());
        set("channel", self.channel.as_str().into());
        set("to", self.to.as_str().into());
        for (field, text) in self.given_texts() {
            set(field.as_str(), text.into());
        }
        if let Some(priority) = self.priority {
            set("priority", priority.as_str().into());
        }
        if let Some(origin) = self.origin {
            set("origin", origin.as_str().into());
        }
        if let Some(content) = &self.content {
            set("content", content.clone().into());
        }
        if !self.metadata.is_empty() {
            set("metadata", self.metadata.clone().into());
        }
        let instants = [
            ("enqueued_at", self.enqueued_at),
            ("not_before", self.not_before),
            ("expires_at", self.expires_at),
        ];
        for (name, instant) in instants {
            if let Some(instant) = instant {
                set(name, rfc3339(name, instant)?.into());
            }
        }
        Ok(fields)
    }
}

/// In UTC with milliseconds. RFC 3339 knows no years before 0.
fn rfc3339(field: &'static str, instant: Timestamp) -> Result<String, JobError> {
    let text = format!("{instant:.3}");
    if text.starts_with('-') {
        return Err(JobError::new(field, "expected a year from 0000 on"));
    }
    Ok(text)
}

/// A text that ends up in an address or a command, where a line break would start another header.
fn check_line(field: &'static str, text: &str) -> Result<(), JobError> {
    if text.chars().any(char::is_control) {
        let expected = "expected a text without control characters";
        return Err(JobError::new(field, expected));
    }
    Ok(())
}

fn check_sound(field: &'static str, sound: bool) -> Result<(), JobError> {
    if sound {
        Ok(())
    } else {
        Err(JobError::new(field, "expected texts without NUL"))
    }
}

fn is_sound_entry((name, value): (&String, &Value)) -> bool {
    !name.contains('\0') && is_sound(value)
}

fn is_sound(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.contains('\0'),
        Value::Array(items) => items.iter().all(is_sound),
        Value::Object(entries) => entries.iter().all(is_sound_entry),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}
