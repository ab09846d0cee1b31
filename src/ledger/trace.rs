//! The gates that a job met, told from how it ended.
//!
//! The order of the gates is a rule, so the end says which of them let the job pass and which were
//! never asked.

/// A gate, in the order in which a job meets them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// Every field can be right.
    Fields,
    /// It is still worth sending.
    Expiry,
    /// Its account may send.
    Account,
    /// Its recipient has not opted out.
    Suppression,
    /// Nothing that it belongs to is paused or cancelled.
    Holds,
    /// Its time has come.
    NotBefore,
    /// The recipient may be written to at this hour.
    QuietHours,
    /// It was not sent before.
    SentBefore,
    /// The recipient has not had too many messages.
    FrequencyCaps,
    /// Its number, its service and its lane have something left of this second.
    Ceilings,
}

impl Gate {
    /// Every gate, in order.
    pub const ALL: [Self; 10] = [
        Self::Fields,
        Self::Expiry,
        Self::Account,
        Self::Suppression,
        Self::Holds,
        Self::NotBefore,
        Self::QuietHours,
        Self::SentBefore,
        Self::FrequencyCaps,
        Self::Ceilings,
    ];

    /// The gate's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fields => "fields",
            Self::Expiry => "expiry",
            Self::Account => "account",
            Self::Suppression => "suppression",
            Self::Holds => "holds",
            Self::NotBefore => "not_before",
            Self::QuietHours => "quiet_hours",
            Self::SentBefore => "sent_before",
            Self::FrequencyCaps => "frequency_caps",
            Self::Ceilings => "ceilings",
        }
    }
}

/// What a gate said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The job passed.
    Passed,
    /// The job went no further.
    Stopped,
    /// The job has to wait here, and is asked about again afterwards.
    Waits,
    /// The job did not come so far.
    NotAsked,
    /// Nobody has written down whether it was asked.
    Unknown,
}

impl Answer {
    /// The answer's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Stopped => "stopped",
            Self::Waits => "waits",
            Self::NotAsked => "not_asked",
            Self::Unknown => "unknown",
        }
    }
}

/// One gate and its answer.
pub type Step = (Gate, Answer);

/// The gates' answers to a job that ended so. `admitted`: whether its last try was counted.
#[must_use]
pub fn trace(outcome: &str, reason: Option<&str>, admitted: bool) -> Vec<Step> {
    match (outcome, reason) {
        ("dispatched" | "failed", _) => every(Answer::Passed),
        ("expired", _) => expired(admitted),
        ("cancelled", _) => ended_at(Gate::Holds, Answer::Stopped),
        ("refused", Some("unknown_account")) => ended_at(Gate::Account, Answer::Stopped),
        ("refused", Some("opted_out")) => ended_at(Gate::Suppression, Answer::Stopped),
        ("refused", Some("quiet_hours")) => ended_at(Gate::QuietHours, Answer::Stopped),
        ("refused", Some("frequency_cap")) => ended_at(Gate::FrequencyCaps, Answer::Stopped),
        ("refused", Some(reason)) if reason.starts_with("invalid_") => {
            ended_at(Gate::Fields, Answer::Stopped)
        }
        // Written by a newer version.
        _ => every(Answer::Unknown),
    }
}

/// The gates' answers to a job that waits for this reason.
#[must_use]
pub fn trace_of_waiting(reason: &str) -> Vec<Step> {
    match reason {
        "paused" => ended_at(Gate::Holds, Answer::Waits),
        "not_before" => ended_at(Gate::NotBefore, Answer::Waits),
        "quiet_hours" => ended_at(Gate::QuietHours, Answer::Waits),
        "number" | "service" => ended_at(Gate::Ceilings, Answer::Waits),
        // It was tried, and its carrier wants to be asked again later.
        "retry_after" => every(Answer::Passed),
        _ => every(Answer::Unknown),
    }
}

/// The gates' answers to a job that an API server has let in: workers ask the first of them again.
#[must_use]
pub fn trace_of_admitted() -> Vec<Step> {
    every(Answer::Passed)
}

fn every(answer: Answer) -> Vec<Step> {
    Gate::ALL.into_iter().map(|gate| (gate, answer)).collect()
}

fn ended_at(end: Gate, how: Answer) -> Vec<Step> {
    let answer = |gate: Gate| match (gate as usize).cmp(&(end as usize)) {
        std::cmp::Ordering::Less => Answer::Passed,
        std::cmp::Ordering::Equal => how,
        std::cmp::Ordering::Greater => Answer::NotAsked,
    };
    let steps = Gate::ALL.into_iter();
    steps.map(|gate| (gate, answer(gate))).collect()
}

/// Expiry is looked at on arrival and again before dispatch, so that the gates in between may or may
/// not have been asked.
fn expired(admitted: bool) -> Vec<Step> {
    let answer = |gate| match gate {
        Gate::Fields => Answer::Passed,
        Gate::Expiry => Answer::Stopped,
        _ if admitted => Answer::Passed,
        _ => Answer::Unknown,
    };
    let steps = Gate::ALL.into_iter();
    steps.map(|gate| (gate, answer(gate))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Outcome;
    use crate::telemetry::all_outcomes;

    fn of(outcome: Outcome, admitted: bool) -> String {
        let reason = Some(outcome.reason()).filter(|reason| !reason.is_empty());
        let letter = |(_, answer): &Step| match answer {
            Answer::Passed => 'p',
            Answer::Stopped => 'S',
            Answer::Waits => 'W',
            Answer::NotAsked => '.',
            Answer::Unknown => '?',
        };
        let steps = trace(outcome.as_str(), reason, admitted);
        steps.iter().map(letter).collect()
    }

    /// Fields, expiry, account, suppression, holds, `not_before`, quiet hours, sent before, caps,
    /// ceilings.
    #[test]
    fn what_came_before_the_end_passed_and_what_came_after_was_not_asked() {
        use crate::domain::{Failure, Field, Refusal};
        let table = [
            (Outcome::Dispatched, "pppppppppp"),
            (Outcome::Failed(Failure::CarrierRejected), "pppppppppp"),
            (Outcome::Failed(Failure::AttemptsExhausted), "pppppppppp"),
            (Outcome::Refused(Refusal::Invalid(Field::To)), "S........."),
            (Outcome::Refused(Refusal::UnknownAccount), "ppS......."),
            (Outcome::Refused(Refusal::OptedOut), "pppS......"),
            (Outcome::Cancelled, "ppppS....."),
            (Outcome::Refused(Refusal::QuietHours), "ppppppS..."),
            (Outcome::Refused(Refusal::FrequencyCap), "ppppppppS."),
            (Outcome::Expired, "pS????????"),
        ];
        for (outcome, expected) in table {
            assert_eq!(of(outcome, false), expected, "{outcome:?}");
        }
        assert_eq!(of(Outcome::Expired, true), "pSpppppppp");
    }

    #[test]
    fn a_job_waits_at_the_gate_of_its_reason() {
        use crate::dispatch::ports::WaitReason;
        for reason in WaitReason::ALL {
            let steps = trace_of_waiting(reason.as_str());
            let at = steps.iter().find(|step| step.1 == Answer::Waits);
            let expected = match reason {
                WaitReason::Paused => Some(Gate::Holds),
                WaitReason::NotBefore => Some(Gate::NotBefore),
                WaitReason::QuietHours => Some(Gate::QuietHours),
                WaitReason::Number | WaitReason::Service => Some(Gate::Ceilings),
                WaitReason::RetryAfter => None,
            };
            assert_eq!(at.map(|step| step.0), expected, "{reason:?}");
            assert!(steps.iter().all(|step| step.1 != Answer::Unknown));
        }
    }

    #[test]
    fn every_outcome_that_has_a_row_has_a_trace() {
        let recorded = all_outcomes()
            .into_iter()
            .filter(|one| *one != Outcome::Dead);
        for outcome in recorded.filter(|one| *one != Outcome::Expired) {
            assert!(!of(outcome, false).contains('?'), "{outcome:?}");
        }
        assert!(
            trace("vanished", None, false)
                .iter()
                .all(|step| step.1 == Answer::Unknown)
        );
    }
}
