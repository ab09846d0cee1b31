//! Notes how far a run has come.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::enqueueing::{Counts, Start};

use super::state::{Identity, State, VERSION};
use super::state_file::{StateError, StateFile};

/// How often a note is made to outlive a power cut. Every note outlives the end of this process.
const DURABLE_EVERY: Duration = Duration::from_secs(1);

/// A run's state, written after every chunk.
pub(super) struct Keeper<'a> {
    file: &'a StateFile,
    state: State,
    durable_at: Instant,
    now: fn() -> Timestamp,
}

impl<'a> Keeper<'a> {
    /// Notes the beginning of a run.
    ///
    /// # Errors
    /// When the state cannot be written.
    pub(super) fn begin(
        file: &'a StateFile,
        identity: Identity,
        start: Start,
        now: fn() -> Timestamp,
    ) -> Result<Self, StateError> {
        let mut keeper = Self {
            file,
            state: State {
                version: VERSION,
                identity,
                enqueued_at: start.enqueued_at,
                confirmed_line: start.mark.line,
                counts: start.mark.counts,
                finished: false,
                updated_at: String::new(),
            },
            durable_at: Instant::now(),
            now,
        };
        keeper.write(true)?;
        Ok(keeper)
    }

    /// All good rows up to this line are stored, and this is what became of them and the others.
    ///
    /// # Errors
    /// When the state cannot be written.
    pub(super) fn note(&mut self, line: u64, counts: Counts) -> Result<(), StateError> {
        self.state.confirmed_line = line;
        self.state.counts = counts.of_all_runs();
        self.write(self.durable_at.elapsed() >= DURABLE_EVERY)
    }

    /// The run ends.
    ///
    /// # Errors
    /// When the state cannot be written.
    pub(super) fn end(&mut self, finished: bool) -> Result<(), StateError> {
        self.state.finished = finished;
        self.write(true)
    }

    fn write(&mut self, durable: bool) -> Result<(), StateError> {
        self.state.updated_at = format!("{:.0}", (self.now)());
        self.file.write(&self.state, durable)?;
        if durable {
            self.durable_at = Instant::now();
        }
        Ok(())
    }
}
