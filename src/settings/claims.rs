//! `[claims]`: the memory of what was sent.

use std::time::Duration;

use super::SettingsError;
use super::reader::Section;

/// How long it is remembered that a job was sent.
#[derive(Debug, Clone, Copy)]
pub struct Claims {
    /// The life of a claim; `None` turns claims off.
    pub life: Option<Duration>,
}

impl Claims {
    pub(super) fn read(section: &Section<'_>) -> Result<Self, SettingsError> {
        let life = section.seconds("life_s", 0..=604_800)?;
        Ok(Self {
            life: (!life.is_zero()).then_some(life),
        })
    }
}
