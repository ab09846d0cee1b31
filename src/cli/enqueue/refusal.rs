//! Why nothing was queued.

use thiserror::Error;

use crate::batch::FileError;
use crate::cli::stop::Signal;
use crate::intake::{IntakeError, Verdict};

use super::plan::Undecided;
use super::state_file::StateError;
use super::transfer::Stopped;

/// Why a run did not begin.
#[derive(Debug, Error)]
pub(super) enum Refusal {
    /// The file as a whole cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// It could not be read to its end.
    #[error("{0}; nothing was queued")]
    Unreadable(Stopped),
    /// Options that do not go together.
    #[error("{0}")]
    Usage(&'static str),
    /// The state cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The operator has to decide.
    #[error(transparent)]
    Undecided(#[from] Undecided),
    /// The broker cannot be used.
    #[error(transparent)]
    Broker(#[from] IntakeError),
    /// Somebody asked the program to stop.
    #[error("stopped by {} before anything was queued", .0.name())]
    Signal(Signal),
}

impl Refusal {
    /// The exit code that says so.
    pub(super) const fn exit_code(&self) -> u8 {
        match self {
            Self::File(_)
            | Self::Usage(_)
            | Self::State(StateError::Unreadable { .. } | StateError::Unwritable { .. })
            | Self::Broker(IntakeError::Url(_) | IntakeError::Prefix(_)) => 2,
            Self::Broker(_) | Self::Unreadable(_) => 1,
            Self::State(StateError::Busy(_) | StateError::Foreign(_)) | Self::Undecided(_) => 4,
            Self::Signal(signal) => signal.exit_code(),
        }
    }

    /// What can be done, where the error itself does not say it.
    pub(super) fn advice(&self) -> Option<String> {
        match self {
            Self::State(error) => Some(error.advice().to_owned()),
            Self::Undecided(undecided) => Some(undecided.advice()),
            Self::Broker(error) if error.verdict() == Verdict::Retry => {
                Some("`lanekeeper check` says what is reachable; nothing was queued".to_owned())
            }
            Self::File(_)
            | Self::Unreadable(_)
            | Self::Usage(_)
            | Self::Broker(_)
            | Self::Signal(_) => None,
        }
    }
}
