//! `[ledger]`: what is written down about each job that has ended.

use std::time::Duration;

use super::reader::Section;
use super::{Secret, SettingsError};

/// In which form the ledger keeps recipients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LedgerRecipient {
    /// As a digest, by which a known recipient's rows can be found.
    Hash,
    /// With all but its ends hidden, for people.
    Mask,
    /// Not at all.
    None,
}

/// What the ledger keeps, and for how long.
#[derive(Debug, Clone)]
pub struct Ledger {
    /// The form of recipients.
    pub recipient: LedgerRecipient,
    /// What goes into the digests, so that nobody without it can try all numbers.
    pub hash_key: Option<Secret>,
    /// How long rows are kept, in whole days; `None`: for ever.
    pub retention: Option<Duration>,
}

const DAY_SECONDS: u64 = 24 * 60 * 60;

/// Shorter keys could be found by trying.
const HASH_KEY_BYTES: usize = 16;

impl Ledger {
    pub(super) fn read(section: &Section<'_>) -> Result<Self, SettingsError> {
        let forms = [
            ("hash", LedgerRecipient::Hash),
            ("mask", LedgerRecipient::Mask),
            ("none", LedgerRecipient::None),
        ];
        let days = section.number("retention_days", 0..=3_650)?;
        Ok(Self {
            recipient: section.choice("recipient", &forms)?,
            hash_key: section.secret("hash_key", read_hash_key)?,
            retention: (days > 0).then(|| Duration::from_secs(days * DAY_SECONDS)),
        })
    }
}

fn read_hash_key(text: &str) -> Result<Secret, String> {
    if text.len() < HASH_KEY_BYTES {
        return Err(format!("a text of {HASH_KEY_BYTES} bytes or more"));
    }
    Ok(Secret::new(text))
}
