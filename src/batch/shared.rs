//! What all jobs of a batch share.

use crate::domain::{AccountId, Channel, Field, JobId, Origin, Priority, Region};

/// What all jobs of a batch share.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The account that sends them.
    pub account: AccountId,
    /// The channel of rows that name none. Without it such rows are rejected.
    pub channel: Option<Channel>,
    /// Where they come from.
    pub origin: Origin,
    /// The batch's id, from which the jobs' ids are made.
    pub id: BatchId,
    /// The priority of rows that name none.
    pub priority: Option<Priority>,
    /// Further fields, for rows that do not have them. A default `body` is for rows that have
    /// neither `body` nor `content`.
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

    /// The id as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id of the job whose row starts on a line of the file, in either format. It depends on
    /// nothing else, so that the same file given again makes the same jobs, which are then known
    /// as sent.
    #[must_use]
    pub fn job_id(&self, line: u64) -> String {
        format!("{}-{line}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batchs_id_leaves_room_for_every_row() {
        let longest = BatchId::parse(&"x".repeat(BatchId::MAX)).unwrap();
        assert!(JobId::parse(&longest.job_id(u64::MAX)).is_ok());
        for bad in ["", "a b", "ä", &"x".repeat(BatchId::MAX + 1)] {
            assert!(BatchId::parse(bad).is_err(), "{bad}");
        }
    }
}
