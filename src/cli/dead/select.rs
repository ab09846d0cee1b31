//! Which dead messages are meant.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

use crate::intake::dead::{Digest, Facts};

use super::line::age as age_of;
use super::problem::Problem;
use crate::cli::age;

/// How old the messages are.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub struct Ages {
    /// Only messages that have been dead for longer: 90s, 10m, 1h30m, 2d
    #[arg(long, value_name = "AGE", value_parser = age::parse)]
    pub older_than: Option<Duration>,
    /// Only messages that have been dead for less
    #[arg(long, value_name = "AGE", value_parser = age::parse)]
    pub newer_than: Option<Duration>,
}

impl Ages {
    /// Whether an age lies between them. One that is unknown does only if nothing is asked.
    fn hold(self, age: Option<Duration>) -> bool {
        let Some(age) = age else {
            return self.older_than.is_none() && self.newer_than.is_none();
        };
        self.older_than.is_none_or(|least| age > least)
            && self.newer_than.is_none_or(|most| age < most)
    }
}

/// What was chosen on the command line, where something must be.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub struct Choice {
    /// References as `dead list` shows them, or their first 6 digits or more, or job ids
    #[arg(value_name = "REF")]
    pub refs: Vec<String>,
    /// Every message with this reason
    #[arg(long)]
    pub reason: Option<String>,
    /// Every message
    #[arg(long)]
    pub all: bool,
}

/// Which messages a command is to do something with.
#[derive(Debug, clap::Args)]
pub struct Which {
    #[command(flatten)]
    pub choice: Choice,
    #[command(flatten)]
    pub ages: Ages,
}

/// Which messages are meant, now that references are known.
#[derive(Debug)]
pub(super) struct Selection {
    what: What,
    ages: Ages,
    now: Timestamp,
}

#[derive(Debug)]
enum What {
    All,
    Reason(String),
    These(BTreeSet<Digest>),
}

impl Selection {
    /// Everything of these ages, or what has a reason.
    pub(super) fn of(reason: Option<String>, ages: Ages, now: Timestamp) -> Self {
        let what = reason.map_or(What::All, What::Reason);
        Self { what, ages, now }
    }

    /// These messages.
    pub(super) fn these(digests: BTreeSet<Digest>, ages: Ages, now: Timestamp) -> Self {
        let what = What::These(digests);
        Self { what, ages, now }
    }

    pub(super) fn holds(&self, facts: &Facts) -> bool {
        self.is_named(facts) && self.ages.hold(age_of(facts, self.now))
    }

    /// Whether a message is left out only because nobody knows its age.
    pub(super) fn misses_for_its_age(&self, facts: &Facts) -> bool {
        facts.since.is_none() && self.is_named(facts) && !self.ages.hold(None)
    }

    fn is_named(&self, facts: &Facts) -> bool {
        match &self.what {
            What::All => true,
            What::Reason(reason) => facts.reason.as_ref() == Some(reason),
            What::These(digests) => digests.contains(&facts.digest),
        }
    }
}

/// Finds out what references stand for.
#[derive(Debug)]
pub(super) struct Resolving<'a> {
    refs: Vec<(&'a str, BTreeSet<Digest>)>,
}

/// What references stand for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Resolved {
    pub(super) digests: BTreeSet<Digest>,
    pub(super) missing: Vec<String>,
}

impl<'a> Resolving<'a> {
    pub(super) fn of(refs: &'a [String]) -> Self {
        let refs = refs.iter().map(|name| (name.as_str(), BTreeSet::new()));
        Self {
            refs: refs.collect(),
        }
    }

    /// Notes a message that is there; whether it is meant.
    pub(super) fn see(&mut self, facts: &Facts) -> bool {
        let mut meant = false;
        for (name, found) in &mut self.refs {
            if facts.digest.begins_with(name) || facts.id.as_deref() == Some(*name) {
                found.insert(facts.digest);
                meant = true;
            }
        }
        meant
    }

    /// # Errors
    /// When one of them stands for several messages that differ.
    pub(super) fn resolve(self) -> Result<Resolved, Problem> {
        let mut resolved = Resolved {
            digests: BTreeSet::new(),
            missing: Vec::new(),
        };
        for (name, found) in self.refs {
            if found.len() > 1 {
                return Err(Problem::ambiguous(name, &found));
            }
            if found.is_empty() {
                resolved.missing.push(name.to_owned());
            }
            resolved.digests.extend(found);
        }
        Ok(resolved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(body: &[u8], reason: &str, since: Option<i64>, id: &str) -> Facts {
        Facts {
            digest: Digest::of(body),
            size: body.len(),
            reason: Some(reason.to_owned()),
            detail: None,
            since: since.map(|at| Timestamp::from_second(at).unwrap()),
            id: Some(id.to_owned()),
            account: None,
            returns: 0,
        }
    }

    fn older_than(seconds: u64) -> Ages {
        Ages {
            older_than: Some(Duration::from_secs(seconds)),
            newer_than: None,
        }
    }

    #[test]
    fn reason_and_age_must_both_fit() {
        let now = Timestamp::from_second(1_000).unwrap();
        let selection = Selection::of(Some("undecodable".to_owned()), older_than(60), now);
        assert!(selection.holds(&facts(b"a", "undecodable", Some(900), "x")));
        for other in [
            facts(b"a", "other", Some(900), "x"),
            facts(b"a", "undecodable", Some(950), "x"),
            facts(b"a", "undecodable", Some(9_000), "x"),
            facts(b"a", "undecodable", None, "x"),
        ] {
            assert!(!selection.holds(&other), "{other:?}");
        }
        assert!(selection.misses_for_its_age(&facts(b"a", "undecodable", None, "x")));
        assert!(!selection.misses_for_its_age(&facts(b"a", "other", None, "x")));
        let all = Selection::of(None, Ages::default(), now);
        assert!(all.holds(&facts(b"a", "other", None, "x")));
    }

    #[test]
    fn references_and_job_ids_are_resolved() {
        let (a, b) = (
            facts(b"a", "r", None, "job-a"),
            facts(b"b", "r", None, "job-b"),
        );
        let refs = [
            a.digest.to_string()[..6].to_owned(),
            "job-b".to_owned(),
            "gone".to_owned(),
        ];
        let mut resolving = Resolving::of(&refs);
        // A message may be there more than once.
        for facts in [&a, &b, &a] {
            resolving.see(facts);
        }
        let resolved = resolving.resolve().unwrap();
        assert_eq!(resolved.digests, BTreeSet::from([a.digest, b.digest]));
        assert_eq!(resolved.missing, ["gone"]);
    }

    #[test]
    fn what_stands_for_two_messages_is_refused() {
        let refs = ["same".to_owned()];
        let mut resolving = Resolving::of(&refs);
        resolving.see(&facts(b"a", "r", None, "same"));
        resolving.see(&facts(b"b", "r", None, "same"));
        let problem = resolving.resolve().unwrap_err().to_string();
        assert!(problem.contains("ca978112ca1b"), "{problem}");
    }
}
