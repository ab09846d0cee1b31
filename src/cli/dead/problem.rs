//! Why a command was not carried out, and the exit code that says so.

use std::collections::BTreeSet;
use std::io;

use thiserror::Error;

use crate::intake::dead::{DeadError, Digest};
use crate::intake::{IntakeError, Verdict};

use super::NOT_FINISHED;
use crate::cli::escape;

/// The most messages that an error names.
const MOST_NAMED: usize = 8;

/// What is said of a command that a signal stopped.
pub(super) const TOLD_TO_STOP: &str = "told to stop";

/// Why a command was not carried out.
#[derive(Debug, Error)]
pub(super) enum Problem {
    /// The broker, or its queue.
    #[error("{0}{advice}", advice = advice(.0))]
    Queue(#[from] DeadError),
    /// What was asked for makes no sense here.
    #[error("{0}")]
    Usage(String),
    /// It was stopped before anything was done.
    #[error("{0}; nothing was done")]
    Interrupted(String),
    /// A second signal came, or the first one's time was over.
    #[error(
        "stopped at once: what was in hand is in the queue again, and may have been replayed; run it again for the rest"
    )]
    CutShort,
    /// No message has that name.
    #[error(
        "no dead message is called {0}; `lanekeeper dead list` shows what there is (6 digits of a reference are enough, fewer are not)"
    )]
    NotFound(String),
    /// A file cannot be read or written.
    #[error("cannot use {path}: {why}")]
    File {
        /// The file.
        path: String,
        /// What the system said.
        why: io::Error,
    },
}

impl Problem {
    /// A signal came before anything was done.
    pub(super) fn told_to_stop() -> Self {
        Self::Interrupted(TOLD_TO_STOP.to_owned())
    }

    pub(super) fn ambiguous(name: &str, found: &BTreeSet<Digest>) -> Self {
        let name = escape::line(name);
        let count = found.len();
        let shown: Vec<_> = found.iter().take(MOST_NAMED).collect();
        let short: BTreeSet<_> = shown.iter().map(ToString::to_string).collect();
        let shown: Vec<_> = if short.len() == shown.len() {
            short.into_iter().collect()
        } else {
            shown.iter().map(|digest| digest.in_full()).collect()
        };
        let more = if count > MOST_NAMED { " and more" } else { "" };
        Self::Usage(format!(
            "{name} stands for {count} different messages: {}{more}; give the references",
            shown.join(", ")
        ))
    }

    pub(super) const fn exit_code(&self) -> u8 {
        match self {
            Self::Queue(_) | Self::File { .. } | Self::Interrupted(_) | Self::CutShort => {
                NOT_FINISHED
            }
            Self::Usage(_) => 2,
            Self::NotFound(_) => 3,
        }
    }
}

fn advice(error: &DeadError) -> &'static str {
    match (error, error.verdict()) {
        (
            DeadError::Intake(IntakeError::Connect { .. } | IntakeError::TimedOut { .. }),
            Verdict::Retry,
        ) => "; `lanekeeper check` says what is reachable",
        _ => "",
    }
}
