//! What to do about what an earlier run has left.

use std::path::Path;

use jiff::Timestamp;
use thiserror::Error;

use crate::enqueueing::{Mark, Start};

use super::state::{Identity, State};

/// What the operator has chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// Go on where the earlier run stopped.
    Resume,
    /// Begin again.
    Restart,
}

/// What follows.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// Queue the rows after a mark.
    Queue(Start),
    /// Nothing: all of it is queued already.
    Finished(Box<State>),
}

impl Plan {
    fn from_the_first_row(enqueued_at: Timestamp) -> Self {
        let mark = Mark::default();
        Self::Queue(Start { enqueued_at, mark })
    }
}

/// Why somebody has to decide first.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum Undecided {
    /// The earlier run stopped part-way.
    #[error(
        "an earlier run of this batch stopped before its end; it is complete up to line {line} ({state})"
    )]
    Unfinished {
        /// The line up to which all is confirmed.
        line: u64,
        /// Where that is kept.
        state: String,
    },
    /// The file is another one by now.
    #[error("the file has changed since an earlier run of this batch ({state})")]
    FileChanged {
        /// Where that is kept.
        state: String,
    },
    /// The same file would make other jobs.
    #[error("an earlier run of this batch had other options or another default region ({state})")]
    OptionsChanged {
        /// Where that is kept.
        state: String,
    },
    /// The state named belongs to something else.
    #[error("{state} is the state of batch {batch} of account {account}")]
    OtherBatch {
        /// The state's place.
        state: String,
        /// Its account.
        account: String,
        /// Its batch.
        batch: String,
    },
}

impl Undecided {
    /// What can be done.
    pub(super) fn advice(&self) -> String {
        match self {
            Self::Unfinished { line, .. } => format!(
                "--resume goes on after line {line}; --restart begins again with the same ids, of which \
                 workers skip those that they remember as sent"
            ),
            Self::FileChanged { .. } => "queue new or corrected rows from a file of their own under a new --batch: \
                 the lines' ids are in use. To finish the earlier run, put the old file back and --resume. \
                 --restart queues this file under the old ids all the same"
                .to_owned(),
            Self::OptionsChanged { .. } => "give the options of the earlier run, or a new --batch. --restart queues \
                 the file with the new options under the old ids all the same"
                .to_owned(),
            Self::OtherBatch { .. } => "name another file by --state".to_owned(),
        }
    }
}

/// Decides what to do at `now`. Whoever queues the same rows a second time says what was said of them
/// the first time: a copy that is as old as its job can be told from a new one.
///
/// # Errors
/// [`Undecided`], when the operator has to.
pub(super) fn plan(
    earlier: Option<State>,
    identity: &Identity,
    choice: Option<Choice>,
    place: &Path,
    now: Timestamp,
) -> Result<Plan, Undecided> {
    let Some(earlier) = earlier else {
        return Ok(Plan::from_the_first_row(now));
    };
    let state = place.display().to_string();
    let before = &earlier.identity;
    if (&before.account, &before.batch) != (&identity.account, &identity.batch) {
        return Err(Undecided::OtherBatch {
            state,
            account: before.account.clone(),
            batch: before.batch.clone(),
        });
    }
    if choice == Some(Choice::Restart) {
        let same = before == identity;
        return Ok(Plan::from_the_first_row(if same {
            earlier.enqueued_at
        } else {
            now
        }));
    }
    if before.file != identity.file {
        return Err(Undecided::FileChanged { state });
    }
    if before.options != identity.options {
        return Err(Undecided::OptionsChanged { state });
    }
    let line = earlier.confirmed_line;
    match choice {
        _ if earlier.finished => Ok(Plan::Finished(Box::new(earlier))),
        Some(Choice::Resume) => Ok(Plan::Queue(Start {
            enqueued_at: earlier.enqueued_at,
            mark: Mark {
                line,
                counts: earlier.counts,
            },
        })),
        _ => Err(Undecided::Unfinished { line, state }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::state::VERSION;
    use super::*;
    use crate::enqueueing::Counts;

    fn identity(account: &str, file: &str, options: &str) -> Identity {
        Identity {
            account: account.to_owned(),
            batch: "spring".to_owned(),
            file: file.to_owned(),
            options: options.to_owned(),
        }
    }

    fn state(finished: bool) -> State {
        State {
            version: VERSION,
            identity: identity("acme", "f", "o"),
            enqueued_at: FIRST,
            confirmed_line: 7,
            counts: Counts::default(),
            finished,
            updated_at: String::new(),
        }
    }

    fn planned(
        earlier: Option<State>,
        now: &Identity,
        choice: Option<Choice>,
    ) -> Result<Plan, Undecided> {
        plan(earlier, now, choice, Path::new("s.json"), NOW)
    }

    /// When the earlier run began.
    const FIRST: Timestamp = Timestamp::constant(1_000, 0);
    const NOW: Timestamp = Timestamp::constant(2_000, 0);

    const CHOICES: [Option<Choice>; 3] = [None, Some(Choice::Resume), Some(Choice::Restart)];

    #[test]
    fn a_first_run_begins_at_the_first_row_whatever_was_chosen() {
        let now = identity("acme", "f", "o");
        for choice in CHOICES {
            assert_eq!(
                planned(None, &now, choice),
                Ok(Plan::from_the_first_row(NOW))
            );
        }
    }

    #[test]
    fn an_unfinished_run_asks_for_a_choice() {
        let now = identity("acme", "f", "o");
        let of = |choice| planned(Some(state(false)), &now, choice);
        assert_eq!(
            of(Some(Choice::Resume)),
            Ok(Plan::Queue(Start {
                enqueued_at: FIRST,
                mark: Mark {
                    line: 7,
                    counts: Counts::default()
                }
            }))
        );
        assert_eq!(
            of(Some(Choice::Restart)),
            Ok(Plan::from_the_first_row(FIRST))
        );
        let undecided = of(None).unwrap_err();
        assert!(undecided.to_string().contains("up to line 7 (s.json)"));
        assert!(undecided.advice().contains("--resume goes on after line 7"));
    }

    #[test]
    fn a_finished_run_is_repeated_only_on_request() {
        let now = identity("acme", "f", "o");
        for choice in [None, Some(Choice::Resume)] {
            let planned = planned(Some(state(true)), &now, choice);
            assert_eq!(planned, Ok(Plan::Finished(Box::new(state(true)))));
        }
        let again = planned(Some(state(true)), &now, Some(Choice::Restart));
        assert_eq!(again, Ok(Plan::from_the_first_row(FIRST)));
    }

    #[test]
    fn what_has_changed_is_named_and_only_a_restart_passes_over_it() {
        for finished in [false, true] {
            let of = |now: &Identity, choice| planned(Some(state(finished)), now, choice);
            let (file, options) = (identity("acme", "g", "o"), identity("acme", "f", "p"));
            for choice in [None, Some(Choice::Resume)] {
                assert!(matches!(
                    of(&file, choice),
                    Err(Undecided::FileChanged { .. })
                ));
                assert!(matches!(
                    of(&options, choice),
                    Err(Undecided::OptionsChanged { .. })
                ));
            }
            for now in [&file, &options] {
                assert_eq!(
                    of(now, Some(Choice::Restart)),
                    Ok(Plan::from_the_first_row(NOW))
                );
            }
        }
    }

    #[test]
    fn the_state_of_another_batch_is_never_replaced() {
        let other = identity("other", "f", "o");
        for choice in CHOICES {
            let undecided = planned(Some(state(true)), &other, choice).unwrap_err();
            assert!(matches!(undecided, Undecided::OtherBatch { .. }));
        }
    }
}
