//! Which messages a command is about, once its references are known.

use jiff::Timestamp;

use crate::intake::dead::{DeadQueue, Facts, Fate};

use super::counted::Counted;
use super::problem::Problem;
use super::report::{Report, interrupted};
use super::select::{Resolving, Selection, Which};

/// What was chosen, and the references that no message has.
pub(super) struct Chosen {
    selection: Selection,
    missing: Vec<String>,
    only: Option<Counted>,
}

impl Chosen {
    /// Finds out which messages are meant. References need a look at all messages first.
    ///
    /// # Errors
    /// When that look fails or does not come to its end, or a reference stands for several messages.
    pub(super) async fn find(
        Which { choice, ages }: Which,
        queue: &DeadQueue,
        now: Timestamp,
    ) -> Result<Self, Problem> {
        if choice.refs.is_empty() {
            return Ok(Self {
                selection: Selection::of(choice.reason, ages, now),
                missing: Vec::new(),
                only: None,
            });
        }
        let mut resolving = Resolving::of(&choice.refs);
        let passed = queue.pass(|letter| {
            resolving.see(&letter.facts);
            Fate::Stay
        });
        let end = passed.await.end?;
        if let Some(why) = interrupted(&end) {
            return Err(Problem::Interrupted(why));
        }
        let resolved = resolving.resolve()?;
        Ok(Self {
            selection: Selection::these(resolved.digests, ages, now),
            missing: resolved.missing,
            only: None,
        })
    }

    /// A report on nothing done yet.
    pub(super) fn report(&self, action: &'static str) -> Report {
        Report {
            action,
            not_found: self.missing.clone(),
            ..Report::default()
        }
    }

    /// From now on only those of them are meant that were counted.
    pub(super) fn narrow(&mut self, counted: Counted) {
        self.only = Some(counted);
    }

    /// Whether a message is meant, which the report takes note of.
    pub(super) fn holds(&mut self, facts: &Facts, report: &mut Report) -> bool {
        let mut meant = self.selection.holds(facts);
        if let Some(only) = &mut self.only {
            meant = meant && only.take(facts.digest);
        }
        report.matched += u64::from(meant);
        report.unknown_age += u64::from(self.selection.misses_for_its_age(facts));
        meant
    }
}
