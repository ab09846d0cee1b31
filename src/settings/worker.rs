//! `[worker]`: the process.

use std::num::NonZeroUsize;
use std::time::Duration;

use super::SettingsError;
use super::reader::Section;

/// How the worker's process runs and stops.
#[derive(Debug, Clone, Copy)]
pub struct Worker {
    /// Threads; `None` for one per processor.
    pub threads: Option<NonZeroUsize>,
    /// How long it may take to finish what is in flight.
    pub grace: Duration,
}

impl Worker {
    pub(super) fn read(section: &Section<'_>) -> Result<Self, SettingsError> {
        Ok(Self {
            threads: NonZeroUsize::new(section.count("threads", 0..=1_024)?),
            grace: section.seconds("grace_s", 1..=3_600)?,
        })
    }
}
