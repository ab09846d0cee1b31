//! What a job must pass before it is metered, in the order of precedence.
//!
//! Pure: what is known of the job, its account's policy and the time are passed in. Whether it was
//! sent before, frequency caps and ceilings are the meter's, because they are checked and counted
//! in one step; only jobs that are older than their claims are known as sent here.

use std::borrow::Cow;

use jiff::Timestamp;

use crate::accounts::{AccountPolicy, QuietAction, QuietPolicy};
use crate::dispatch::ports::{Due, Facts, Hold, WaitReason};
use crate::domain::{Field, Job, Outcome, Refusal, SentRecord};
use crate::gates::quiet_hours::{check, zones_of_recipient};

/// A gate, in the order in which they are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// Nothing is sent to somebody who has opted out, whatever its lane.
    Suppression,
    /// The account, campaign, journey or batch is paused or cancelled.
    Hold,
    /// The publisher wants it to be sent later.
    NotBefore,
    /// The hours in which the recipient may be written to.
    QuietHours,
    /// The ledger knows that it was sent.
    Ledger,
}

/// What a gate makes of a job that may not pass.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnedAway {
    /// It has ended.
    Ended {
        /// How.
        outcome: Outcome,
        /// What exactly was wrong, where there is more to say than the reason.
        detail: Option<Cow<'static, str>>,
        /// When the gate will let the recipient's next message pass, where it knows.
        next_allowed_at: Option<Timestamp>,
    },
    /// It waits.
    Waits(WaitReason, Due),
    /// It was sent before.
    Sent(SentRecord),
}

impl TurnedAway {
    fn ended(outcome: Outcome) -> Self {
        Self::Ended {
            outcome,
            detail: None,
            next_allowed_at: None,
        }
    }
}

/// Everything that a gate may look at.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// The job.
    pub job: &'a Job,
    /// What its account's operator has laid down.
    pub policy: &'a AccountPolicy,
    /// What is known of it; `None` without a database: then nothing can wait either.
    pub facts: Option<&'a Facts>,
    /// The present instant.
    pub now: Timestamp,
}

impl Gate {
    /// Every gate, in order.
    pub const ALL: [Self; 5] = [
        Self::Suppression,
        Self::Hold,
        Self::NotBefore,
        Self::QuietHours,
        Self::Ledger,
    ];

    /// The gate's answer; `None` lets the job pass.
    #[must_use]
    pub fn judge(self, case: Case<'_>) -> Option<TurnedAway> {
        match self {
            Self::Suppression => suppression(case),
            Self::Hold => hold(case),
            Self::NotBefore => not_before(case),
            Self::QuietHours => quiet_hours(case),
            Self::Ledger => case.facts?.sent.clone().map(TurnedAway::Sent),
        }
    }
}

/// The first gate that does not let a job pass, and its answer.
#[must_use]
pub fn turned_away(case: Case<'_>) -> Option<(Gate, TurnedAway)> {
    Gate::ALL
        .into_iter()
        .find_map(|gate| gate.judge(case).map(|answer| (gate, answer)))
}

fn suppression(case: Case<'_>) -> Option<TurnedAway> {
    case.facts?
        .opted_out
        .then(|| TurnedAway::ended(Outcome::Refused(Refusal::OptedOut)))
}

fn hold(case: Case<'_>) -> Option<TurnedAway> {
    Some(match case.facts?.hold? {
        Hold::Cancelled => TurnedAway::ended(Outcome::Cancelled),
        Hold::Paused => TurnedAway::Waits(WaitReason::Paused, Due::Resumed),
    })
}

fn not_before(case: Case<'_>) -> Option<TurnedAway> {
    let due = case.job.not_before.filter(|due| *due > case.now)?;
    Some(if case.facts.is_some() {
        TurnedAway::Waits(WaitReason::NotBefore, Due::At(due))
    } else {
        TurnedAway::ended(Outcome::Refused(Refusal::Invalid(Field::NotBefore)))
    })
}

/// Where the policy cannot be read nothing may be sent at any hour, because nobody can say which
/// hour suits.
fn quiet_hours(case: Case<'_>) -> Option<TurnedAway> {
    let job = case.job;
    let refused = |detail, next_allowed_at| TurnedAway::Ended {
        outcome: Outcome::Refused(Refusal::QuietHours),
        detail,
        next_allowed_at,
    };
    let (windows, zone, action) = match &case.policy.quiet_hours {
        QuietPolicy::Off => return None,
        QuietPolicy::Broken { why } => return Some(refused(Some(why.clone()), None)),
        QuietPolicy::On {
            windows,
            zone,
            action,
        } => (windows, zone, action),
    };
    let window = windows.get(job.channel)?;
    let number = job.channel.is_phone().then_some(&*job.to);
    let (_, zones) = zones_of_recipient(job.recipient_zone.as_ref(), number, zone);
    let blocked = check(window, zones, case.now).err()?;
    Some(match (action, blocked.next_allowed_at) {
        (QuietAction::Defer, Some(due)) if case.facts.is_some() => {
            TurnedAway::Waits(WaitReason::QuietHours, Due::At(due))
        }
        (QuietAction::Defer | QuietAction::Refuse, next) => refused(None, next),
    })
}
