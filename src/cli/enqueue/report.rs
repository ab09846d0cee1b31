//! What a run tells at its end: the figures as scripts get them.

use std::path::Path;

use indicatif::HumanCount;
use serde::Serialize;

use crate::batch::{RowError, is_standard_input};
use crate::enqueueing::Counts;

use super::refusal::Refusal;
use super::state::State;
use super::transfer::{Outcome, Stopped};
use crate::cli::progress::per_second;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    /// Every row was read, and every good one is stored.
    Complete,
    /// Every row was read, and none was queued: a dry run.
    Checked,
    /// An earlier run had stored all of it.
    AlreadyQueued,
    /// It ended before the file did.
    Stopped,
    /// Nothing was queued.
    Refused,
}

/// Everything that is told.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) status: Status,
    pub(super) exit_code: u8,
    pub(super) file: String,
    pub(super) account: String,
    pub(super) batch: String,
    /// The exchange and the broker, without user and password.
    pub(super) destination: Option<String>,
    /// The rows that were read; the other figures add up to it.
    pub(super) rows: u64,
    #[serde(flatten)]
    pub(super) counts: Counts,
    /// Up to the row that begins on this line every good row is stored.
    pub(super) complete_to_line: u64,
    pub(super) first_id: Option<String>,
    pub(super) last_id: Option<String>,
    pub(super) seconds: f64,
    /// Rows queued in this run, by its seconds.
    pub(super) rows_per_second: u64,
    /// Where it is kept how far the run has come.
    pub(super) state: Option<String>,
    pub(super) rejected_rows: Vec<RowError>,
    /// Rejected rows that are not listed.
    pub(super) rejected_rows_not_listed: u64,
    pub(super) error: Option<String>,
    /// What to do next.
    pub(super) next: Option<String>,
}

impl Report {
    /// Of a run that did nothing yet.
    pub(super) fn new(file: &Path, account: &str, batch: &str) -> Self {
        Self {
            status: Status::Refused,
            exit_code: 0,
            file: if is_standard_input(file) {
                "standard input".to_owned()
            } else {
                file.display().to_string()
            },
            account: account.to_owned(),
            batch: batch.to_owned(),
            destination: None,
            rows: 0,
            counts: Counts::default(),
            complete_to_line: 0,
            first_id: None,
            last_id: None,
            seconds: 0.0,
            rows_per_second: 0,
            state: None,
            rejected_rows: Vec::new(),
            rejected_rows_not_listed: 0,
            error: None,
            next: None,
        }
    }

    /// The same run, with its state's place.
    pub(super) fn kept_in(self, state: &Path) -> Self {
        Self {
            state: Some(state.display().to_string()),
            ..self
        }
    }

    /// Nothing was queued.
    pub(super) fn refused(self, refusal: &Refusal) -> Self {
        Self {
            status: Status::Refused,
            exit_code: refusal.exit_code(),
            error: Some(refusal.to_string()),
            next: refusal.advice(),
            ..self
        }
    }

    /// An earlier run has queued all of it.
    pub(super) fn already_queued(self, state: &State) -> Self {
        let counts = Counts {
            queued: 0,
            already_queued: state.counts.queued,
            ..state.counts
        };
        let next = format!(
            "nothing: this batch was queued to its end at {}; --restart queues it again with the same ids",
            state.updated_at
        );
        Self {
            status: Status::AlreadyQueued,
            exit_code: 0,
            rows: counts.rows(),
            counts,
            complete_to_line: state.confirmed_line,
            next: Some(next),
            ..self
        }
    }

    /// The whole file was checked, and a bad row kept it from being queued.
    pub(super) fn not_strict_enough(self, outcome: &Outcome) -> Self {
        let error = format!(
            "{} of {} rows are bad; nothing was queued, because of --strict",
            HumanCount(outcome.counts.rejected),
            HumanCount(outcome.counts.rows()),
        );
        let next =
            "correct those rows and run it again, or leave --strict away to queue the others";
        let mut report = self.of(outcome, Status::Refused);
        report.counts.not_queued += std::mem::take(&mut report.counts.queued);
        report.state = None;
        (report.first_id, report.last_id) = (None, None);
        report.complete_to_line = 0;
        report.rows_per_second = 0;
        report.exit_code = 2;
        report.error = Some(error);
        report.next = Some(next.to_owned());
        report
    }

    /// What a run did.
    pub(super) fn ran(self, outcome: &Outcome) -> Self {
        let (status, exit_code) = match &outcome.stopped {
            None if outcome.counts.rejected > 0 => (Status::Complete, 3),
            None => (Status::Complete, 0),
            Some(Stopped::Signal(signal)) => (Status::Stopped, signal.exit_code()),
            Some(_) => (Status::Stopped, 1),
        };
        let error = outcome.stopped.as_ref().map(ToString::to_string);
        let mut report = self.of(outcome, status);
        report.exit_code = exit_code;
        report.next = report.what_next();
        report.error = error;
        report
    }

    /// What a dry run found.
    pub(super) fn checked(self, outcome: &Outcome) -> Self {
        Self {
            status: Status::Checked,
            next: (outcome.counts.good() > 0)
                .then(|| "leave --dry-run away to queue them".to_owned()),
            ..self.ran(outcome)
        }
    }

    fn of(self, outcome: &Outcome, status: Status) -> Self {
        let (first_id, last_id) = outcome.ids.clone().unzip();
        Self {
            status,
            rows: outcome.counts.rows(),
            counts: outcome.counts,
            complete_to_line: outcome.complete_to_line,
            first_id,
            last_id,
            seconds: (outcome.took.as_secs_f64() * 1_000.0).round() / 1_000.0,
            rows_per_second: per_second(outcome.counts.queued, outcome.took),
            rejected_rows: outcome.rejected.clone(),
            rejected_rows_not_listed: outcome.not_shown(),
            ..self
        }
    }

    fn what_next(&self) -> Option<String> {
        if self.status == Status::Stopped {
            let line = self.complete_to_line;
            return Some(if self.state.is_some() {
                format!("the same command with --resume goes on after line {line}")
            } else {
                "give the same input again: the ids are the same, and workers skip those that they \
                 remember as sent"
                    .to_owned()
            });
        }
        (self.counts.rejected > 0).then(|| {
            "correct the rejected rows in a file of their own and queue it under another --batch"
                .to_owned()
        })
    }
}
