//! A job's text, written once for its batch as far as it is the same for every row.

use std::io::Write as _;
use std::ops::Range;

use jiff::Timestamp;

use super::error::RowError;
use super::shared::{Batch, BatchId};
use crate::domain::{Decoded, Field, Job, Region};
use crate::intake::decode::decode;

/// The fields that belong to the batch and not to a row.
pub(super) const OF_THE_BATCH: [Field; 5] = [
    Field::Id,
    Field::AccountId,
    Field::Origin,
    Field::BatchId,
    Field::EnqueuedAt,
];

/// What stands in every job of a batch.
pub(super) struct Template {
    batch: BatchId,
    /// What follows a job's id.
    shared: Vec<u8>,
    /// Fields for rows that do not have them, each with its value in JSON.
    defaults: Vec<(Field, Vec<u8>)>,
    default_region: Option<Region>,
}

impl Template {
    /// The template of a batch whose rows are queued at `now`.
    pub(super) fn new(batch: &Batch, now: Timestamp) -> Self {
        let mut shared = Vec::new();
        for (field, value) in [
            (Field::AccountId, batch.account.as_str()),
            (Field::Origin, batch.origin.as_str()),
            (Field::BatchId, batch.id.as_str()),
            (Field::EnqueuedAt, &format!("{now:.3}")),
        ] {
            push_entry(&mut shared, field.as_str());
            push_string(&mut shared, value);
        }
        let channel = batch.channel.map(|it| (Field::Channel, it.as_str()));
        let priority = batch.priority.map(|it| (Field::Priority, it.as_str()));
        let further = batch
            .defaults
            .iter()
            .map(|(field, value)| (*field, &**value));
        let json = |(field, value): (Field, &str)| (field, json_string(value));
        Self {
            batch: batch.id.clone(),
            shared,
            defaults: [channel, priority]
                .into_iter()
                .flatten()
                .chain(further)
                .map(json)
                .collect(),
            default_region: batch.default_region,
        }
    }

    /// Begins the job of the row that starts on a line.
    pub(super) fn draft(&self, line: u64) -> Draft {
        let mut text = Vec::with_capacity(512);
        // An id has no character that JSON escapes.
        let id = self.batch.job_id(line);
        write!(text, "{{\"id\":\"{id}\"").expect("memory takes it");
        text.extend_from_slice(&self.shared);
        Draft {
            line,
            text,
            to: 0..0,
            given: Given::default(),
        }
    }

    /// Completes a job by the batch's defaults, and reads it as a worker will.
    ///
    /// # Errors
    /// When a worker would not send it.
    pub(super) fn job(&self, mut draft: Draft) -> Result<Job, RowError> {
        let has_content = draft.given.has(Field::Content);
        for (field, value) in &self.defaults {
            let unwanted = *field == Field::Body && has_content;
            if !draft.given.has(*field) && !unwanted {
                draft.json(*field, value);
            }
        }
        if !draft.given.has(Field::Channel) {
            let reason = "a row needs a channel, because the batch names none";
            return Err(RowError::new(draft.line, "channel", reason));
        }
        if !has_content && !draft.given.has(Field::Body) {
            let reason = "a row needs a body or content";
            return Err(RowError::new(draft.line, "body", reason));
        }
        draft.text.push(b'}');
        let job = self.read(draft.line, draft.text)?;
        match self.internationally(&job, draft.to) {
            Some(text) => self.read(draft.line, text),
            None => Ok(job),
        }
    }

    /// The job's text with its number as the default region completes it, where that differs: a
    /// worker may have another default region, or none.
    fn internationally(&self, job: &Job, to: Range<usize>) -> Option<Vec<u8>> {
        self.default_region.filter(|_| job.channel.is_phone())?;
        let text = job.payload.as_bytes();
        let number = json_string(&job.to);
        (text[to.clone()] != number).then(|| [&text[..to.start], &number, &text[to.end..]].concat())
    }

    fn read(&self, line: u64, text: Vec<u8>) -> Result<Job, RowError> {
        let decoding = decode(text.into(), self.default_region);
        if let Some(field) = decoding.hints.fields().next() {
            return Err(RowError::new(line, field, "has a value that is not known"));
        }
        match decoding.decoded {
            Decoded::Job(job) => Ok(*job),
            Decoded::Invalid { field, detail, .. } => {
                Err(RowError::new(line, field.as_str(), detail))
            }
            Decoded::Undecodable { detail, .. } => Err(RowError::row(line, detail)),
        }
    }
}

/// The beginning of a job's text.
pub(super) struct Draft {
    pub(super) line: u64,
    text: Vec<u8>,
    /// Where the recipient stands in it.
    to: Range<usize>,
    given: Given,
}

impl Draft {
    /// Adds a field with a text.
    pub(super) fn string(&mut self, field: Field, value: &str) {
        push_entry(&mut self.text, field.as_str());
        let start = self.text.len();
        push_string(&mut self.text, value);
        self.given(field, start);
    }

    /// Adds a field whose value is JSON.
    pub(super) fn json(&mut self, field: Field, value: &[u8]) {
        push_entry(&mut self.text, field.as_str());
        let start = self.text.len();
        self.text.extend_from_slice(value);
        self.given(field, start);
    }

    /// A field is there, whose value stands from `start` on.
    fn given(&mut self, field: Field, start: usize) {
        if field == Field::To {
            self.to = start..self.text.len();
        }
        self.given.add(field);
    }

    /// Adds an entry that is no field of a job, with a value in JSON.
    pub(super) fn entry(&mut self, name: &str, value: &[u8]) {
        push_entry(&mut self.text, name);
        self.text.extend_from_slice(value);
    }
}

/// The fields that a row has.
#[derive(Default, Clone, Copy)]
struct Given(u32);

impl Given {
    fn add(&mut self, field: Field) {
        self.0 |= 1 << field as u32;
    }

    fn has(self, field: Field) -> bool {
        self.0 & (1 << field as u32) != 0
    }
}

/// Adds `,"name":`.
pub(super) fn push_entry(text: &mut Vec<u8>, name: &str) {
    text.push(b',');
    push_string(text, name);
    text.push(b':');
}

/// Adds a text as JSON spells it.
pub(super) fn push_string(text: &mut Vec<u8>, value: &str) {
    serde_json::to_writer(text, value).expect("a text is JSON, and memory takes it");
}

fn json_string(value: &str) -> Vec<u8> {
    let mut text = Vec::new();
    push_string(&mut text, value);
    text
}
