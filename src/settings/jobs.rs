//! `[jobs]`: how jobs are read and retried.

use std::time::Duration;

use super::SettingsError;
use super::reader::Section;
use crate::domain::Region;

/// How jobs are read and retried.
#[derive(Debug, Clone, Copy)]
pub struct Jobs {
    /// The country whose numbers may be written without their country code.
    pub default_region: Option<Region>,
    /// Carrier tries before a job ends as failed; at least 1.
    pub max_attempts: u32,
    /// The wait before the second try.
    pub retry_base: Duration,
    /// The longest wait that is spent in the worker; a longer one is spent in the parking queue.
    pub park_above: Duration,
    /// The longest wait that a carrier may ask for.
    pub retry_after_cap: Duration,
}

impl Jobs {
    pub(super) fn read(section: &Section<'_>) -> Result<Self, SettingsError> {
        let region = |text: &str| Region::parse(text).ok_or(Region::EXPECTED);
        Ok(Self {
            default_region: section.parsed_if_given("default_region", region)?,
            max_attempts: section.count("max_attempts", 1..=1_000)?,
            retry_base: section.millis("retry_base_ms", 10..=60_000)?,
            park_above: section.millis("park_above_ms", 0..=5_000)?,
            retry_after_cap: section.seconds("retry_after_cap_s", 1..=86_400)?,
        })
    }
}
