//! How far the queueing of a file has come, as it is kept between runs. It holds no recipients.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::batch::{Batch, BatchFile, RowOptions};
use crate::enqueueing::{Counts, options_digest};

/// The form of what is kept; another one is left alone.
pub(super) const VERSION: u32 = 1;

/// What is queued: the same twice makes the same jobs with the same ids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    /// The account.
    pub(super) account: String,
    /// The batch.
    pub(super) batch: String,
    /// The digest of the file's bytes.
    pub(super) file: String,
    /// The digest of the options and settings that decide what becomes of a row.
    pub(super) options: String,
}

impl Identity {
    pub(super) fn of(file: &BatchFile, batch: &Batch, rows: RowOptions) -> Self {
        Self {
            account: batch.account.to_string(),
            batch: batch.id.as_str().to_owned(),
            file: format!("sha256:{}", file.digest()),
            options: format!("sha256:{}", options_digest(file.format(), batch, rows)),
        }
    }
}

/// How far it has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    /// The form of this record.
    pub(super) version: u32,
    /// What is queued.
    #[serde(flatten)]
    pub(super) identity: Identity,
    /// What is written into every job, in RFC 3339 with milliseconds: when the first run of these
    /// rows began. Later runs write the same, so that a row queued twice is one job twice.
    #[serde(with = "millis")]
    pub(super) enqueued_at: Timestamp,
    /// Up to the row that begins on this line every good row is confirmed; 0 before the first.
    pub(super) confirmed_line: u64,
    /// What became of the rows up to there.
    pub(super) counts: Counts,
    /// Whether that was the whole file.
    pub(super) finished: bool,
    /// When this was written, in RFC 3339.
    pub(super) updated_at: String,
}

/// An instant as jobs write it.
mod millis {
    use jiff::Timestamp;
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(
        instant: &Timestamp,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{instant:.3}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Timestamp, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}
