//! `[outcomes]`: what the world is told.

use super::SettingsError;
use super::reader::Section;

/// Whether the world is told of jobs' ends.
#[derive(Debug, Clone, Copy)]
pub struct Outcomes {
    /// Whether outcome events are published.
    pub enabled: bool,
}

impl Outcomes {
    pub(super) fn read(section: &Section<'_>) -> Result<Self, SettingsError> {
        Ok(Self {
            enabled: section.flag("enabled")?,
        })
    }
}
