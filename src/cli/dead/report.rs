//! What replaying or dropping came to.

use std::fmt;
use std::io::{self, Write as _};

use serde::Serialize;

use crate::intake::dead::{End, Passed};

use super::NOT_FINISHED;
use super::problem::{Problem, TOLD_TO_STOP};
use crate::cli::escape;

/// What a command did.
#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    /// `replay` or `drop`.
    pub(super) action: &'static str,
    /// Whether it only said what it would do.
    pub(super) dry_run: bool,
    /// Messages that were chosen.
    pub(super) matched: u64,
    /// Messages that have left the queue.
    pub(super) done: u64,
    /// Chosen messages that are still there.
    pub(super) left: u64,
    /// Of those left, how many cannot be read yet.
    pub(super) still_undecodable: u64,
    /// Of those replayed, how many workers will refuse because of a field.
    pub(super) will_be_refused: u64,
    /// Messages left out only because their age is unknown.
    pub(super) unknown_age: u64,
    /// References that no message has.
    pub(super) not_found: Vec<String>,
    /// What stopped it before its end.
    pub(super) stopped_by: Option<String>,
}

impl Report {
    /// Takes in how the pass ended.
    pub(super) fn finish(&mut self, passed: Passed) {
        self.done = passed.gone;
        self.left = self.matched - self.done.min(self.matched);
        self.stopped_by = match passed.end {
            Ok(end) => interrupted(&end),
            Err(error) => Some(error.to_string()),
        };
    }

    pub(super) fn exit_code(&self) -> u8 {
        if self.stopped_by.is_some() {
            NOT_FINISHED
        } else if self.still_undecodable > 0 || !self.not_found.is_empty() {
            3
        } else {
            0
        }
    }

    /// Prints it, and gives its exit code.
    pub(super) fn show(&self, json: bool) -> Result<u8, Problem> {
        if json {
            let line = escape::json(self).expect("texts and numbers can be written as JSON");
            print(&(line + "\n"))?;
        } else {
            print(&format!("{self}\n"))?;
        }
        Ok(self.exit_code())
    }

    fn verb(&self) -> &'static str {
        match (self.action, self.dry_run) {
            ("replay", true) => "would replay",
            ("replay", false) => "replayed",
            _ => "dropped",
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let done = if self.dry_run {
            self.matched - self.still_undecodable
        } else {
            self.done
        };
        write!(f, "{} {done} of {} matched", self.verb(), self.matched)?;
        if self.left > 0 && !self.dry_run {
            write!(f, ", {} left", self.left)?;
        }
        if self.still_undecodable > 0 {
            write!(f, ", {} still undecodable", self.still_undecodable)?;
        }
        if self.will_be_refused > 0 {
            write!(f, ", {} of them to be refused", self.will_be_refused)?;
        }
        if self.unknown_age > 0 {
            write!(f, "; {} of unknown age left out", self.unknown_age)?;
        }
        for name in &self.not_found {
            write!(f, "; no message is called {}", escape::line(name))?;
        }
        match &self.stopped_by {
            Some(why) => write!(f, "; stopped: {why}; run it again for the rest"),
            None => Ok(()),
        }
    }
}

/// Why a pass did not come to its end, if so.
pub(super) fn interrupted(end: &End) -> Option<String> {
    match end {
        End::Complete => None,
        End::Stopped => Some(TOLD_TO_STOP.to_owned()),
        End::OutOfTime => Some("the time that a broker allows was nearly over".to_owned()),
        End::Unpublished(error) => Some(error.to_string()),
    }
}

/// Writes to standard output. Whoever has closed it wants no more.
pub(super) fn print(text: &str) -> Result<(), Problem> {
    print_bytes(text.as_bytes())
}

/// The same for what need not be text.
pub(super) fn print_bytes(bytes: &[u8]) -> Result<(), Problem> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(why) if why.kind() != io::ErrorKind::BrokenPipe => Err(Problem::File {
            path: "standard output".to_owned(),
            why,
        }),
        _ => Ok(()),
    }
}
