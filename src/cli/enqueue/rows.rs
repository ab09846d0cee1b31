//! From a line of input to a job.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::value::{RawValue, to_raw_value};
use thiserror::Error;

use crate::domain::{AccountId, Channel, Decoded, Field, Job, JobId, Origin, Priority, Region};
use crate::intake::decode::decode;

/// What all jobs of a batch share.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The account that sends them.
    pub account: AccountId,
    /// The channel of rows that name none.
    pub channel: Channel,
    /// Where they come from.
    pub origin: Origin,
    /// The batch's id, from which the jobs' ids are made.
    pub id: BatchId,
    /// The priority of rows that name none.
    pub priority: Option<Priority>,
    /// Further fields, for rows that do not have them.
    pub defaults: Vec<(Field, String)>,
    /// The country of telephone numbers without a country code.
    pub default_region: Option<Region>,
}

/// A batch's id, such that the ids of its jobs are valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchId(String);

impl BatchId {
    /// The longest id; a hyphen and a row's number must fit behind it.
    pub const MAX: usize = 107;

    /// Reads a batch's id.
    ///
    /// # Errors
    /// When it is empty, too long, or has a character that no job's id may have.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > Self::MAX || JobId::parse(text).is_err() {
            return Err(format!(
                "expected 1 to {} characters of A-Z a-z 0-9 . _ : -",
                Self::MAX
            ));
        }
        Ok(Self(text.to_owned()))
    }

    /// The id of the job on a line of the file. It depends on nothing else, so that the same file
    /// given again makes the same jobs, which are then known as sent.
    #[must_use]
    pub fn job_id(&self, line: u64) -> String {
        format!("{}-{line}", self.0)
    }
}

/// Why a row is no job. It holds nothing of the row's values: the recipient is among them.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: {field}: {reason}")]
pub struct RowError {
    /// The line in the file, from 1.
    pub line: u64,
    /// The field that is wrong; `row` where it is the whole.
    pub field: String,
    /// What is wrong with it.
    pub reason: String,
}

type Fields = BTreeMap<String, Box<RawValue>>;

/// The fields that belong to the batch and not to a row.
const OF_THE_BATCH: [Field; 5] = [
    Field::Id,
    Field::AccountId,
    Field::Origin,
    Field::BatchId,
    Field::EnqueuedAt,
];

impl Batch {
    /// Makes the job of one line.
    ///
    /// # Errors
    /// [`RowError`], when the line is no object, or not one that a worker would send.
    pub fn job(&self, line: u64, text: &[u8], now: Timestamp) -> Result<Job, RowError> {
        let error = |field: &str, reason: String| RowError {
            line,
            field: field.to_owned(),
            reason,
        };
        let row: Fields = serde_json::from_slice(text)
            .map_err(|_| error("row", "expected one JSON object per line".to_owned()))?;
        if let Some(field) = OF_THE_BATCH
            .iter()
            .find(|field| row.contains_key(field.as_str()))
        {
            let reason = "is set for the whole batch and may not stand in a row".to_owned();
            return Err(error(field.as_str(), reason));
        }
        let has_content = [Field::Body, Field::Content].iter().any(|field| {
            row.get(field.as_str())
                .is_some_and(|value| value.get() != "null")
        });
        if !has_content {
            return Err(error("body", "a row needs a body or content".to_owned()));
        }
        let job = self.merge(line, row, now);
        let message =
            serde_json::to_vec(&job).map_err(|_| error("row", "is no JSON".to_owned()))?;
        let decoding = decode(message.into(), self.default_region);
        if let Some(field) = decoding.hints.fields().next() {
            return Err(error(field, "has a value that is not known".to_owned()));
        }
        match decoding.decoded {
            Decoded::Job(job) => Ok(*job),
            Decoded::Invalid { field, detail, .. } => Err(error(field.as_str(), detail)),
            Decoded::Undecodable { detail, .. } => Err(error("row", detail)),
        }
    }

    /// The row over the batch's defaults, and what belongs to the batch over both.
    fn merge(&self, line: u64, row: Fields, now: Timestamp) -> Fields {
        let mut job = Fields::new();
        let mut set = |field: Field, value: &str| {
            if let Ok(value) = to_raw_value(value) {
                job.insert(field.as_str().to_owned(), value);
            }
        };
        set(Field::Channel, self.channel.as_str());
        if let Some(priority) = self.priority {
            set(Field::Priority, priority.as_str());
        }
        for (field, value) in &self.defaults {
            set(*field, value);
        }
        set(Field::Id, &self.id.job_id(line));
        set(Field::AccountId, self.account.as_str());
        set(Field::Origin, self.origin.as_str());
        set(Field::BatchId, &self.id.0);
        set(Field::EnqueuedAt, &format!("{now:.3}"));
        job.extend(row);
        job
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch() -> Batch {
        Batch {
            account: AccountId::parse("acme").unwrap(),
            channel: Channel::Sms,
            origin: Origin::Campaign,
            id: BatchId::parse("spring").unwrap(),
            priority: None,
            defaults: vec![(Field::From, "Acme".to_owned())],
            default_region: None,
        }
    }

    fn job(text: &str) -> Result<Job, RowError> {
        batch().job(7, text.as_bytes(), Timestamp::UNIX_EPOCH)
    }

    fn refused(text: &str) -> String {
        job(text).unwrap_err().to_string()
    }

    #[test]
    fn a_row_becomes_a_job_of_its_batch() {
        let job = job(r#"{"to":"+44 7700 900123","body":"x","metadata":{"n":1.10}}"#).unwrap();
        assert_eq!(job.head.id.as_str(), "spring-7");
        assert_eq!(job.head.account.as_str(), "acme");
        assert_eq!(&*job.to, "+447700900123");
        let text = std::str::from_utf8(job.payload.as_bytes()).unwrap();
        for part in [
            r#""enqueued_at":"1970-01-01T00:00:00.000Z""#,
            r#""from":"Acme""#,
            r#""metadata":{"n":1.10}"#,
            r#""batch_id":"spring""#,
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn a_row_may_differ_from_the_defaults() {
        let job = job(r#"{"to":"+447700900123","body":"x","from":"Other"}"#).unwrap();
        let text = std::str::from_utf8(job.payload.as_bytes()).unwrap();
        assert!(text.contains(r#""from":"Other""#) && !text.contains("Acme"));
    }

    #[test]
    fn errors_name_line_and_field_and_no_value() {
        assert_eq!(
            refused("S3NTINEL"),
            "line 7: row: expected one JSON object per line"
        );
        assert!(refused(r#"{"to":"S3NTINEL","body":"x"}"#).starts_with("line 7: to: "));
        assert!(refused(r#"{"body":"x"}"#).starts_with("line 7: to: "));
        assert!(refused(r#"{"to":"+447700900123"}"#).starts_with("line 7: body: "));
        assert!(refused(r#"{"to":"+447700900123","body":"x","id":"1"}"#).contains("line 7: id: "));
        let hint = r#"{"to":"+447700900123","body":"x","priority":"urgent"}"#;
        assert!(refused(hint).starts_with("line 7: priority: "));
        assert!(!refused(r#"{"to":"S3NTINEL","body":"x"}"#).contains("S3NTINEL"));
    }

    #[test]
    fn a_batchs_id_leaves_room_for_every_row() {
        let longest = BatchId::parse(&"x".repeat(BatchId::MAX)).unwrap();
        assert!(JobId::parse(&longest.job_id(u64::MAX)).is_ok());
        for bad in ["", "a b", "ä", &"x".repeat(BatchId::MAX + 1)] {
            assert!(BatchId::parse(bad).is_err(), "{bad}");
        }
    }
}
