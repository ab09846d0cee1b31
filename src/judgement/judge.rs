//! What would become of a job at this moment, gate by gate. Pure: what is known of the job and of the
//! counts is passed in.

use jiff::Timestamp;
use serde::Serialize;

use crate::accounts::AccountPolicy;
use crate::dispatch::ports::{Door, Due, Facts, JobRequest};
use crate::domain::{Decoded, Job, JobHead, Lane, Outcome, Refusal, SentRecord};
use crate::gates::{Case, Gate as ChainGate, TurnedAway};
use crate::ledger::Gate;
use crate::meter::{CapNow, ClaimNow, Standing};

/// What would become of a job.
#[derive(Debug, Serialize)]
pub struct Judgement {
    /// The job's id, where it could be read.
    pub id: Option<String>,
    /// Its account.
    pub account_id: Option<String>,
    /// Its lane.
    pub lane: Option<&'static str>,
    /// The part of the lane rule that chose it.
    pub lane_rule: Option<&'static str>,
    /// What its account's operator has laid down, as far as it is a matter of numbers.
    pub policy: Option<String>,
    /// In the order in which they are asked.
    pub gates: Vec<Step>,
    /// `send`, `shed`, `wait`, `repeat`, an outcome, or `unknown`.
    pub verdict_kind: &'static str,
    /// The same for people.
    pub verdict: String,
}

/// One gate's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Its name.
    pub gate: &'static str,
    /// `passed`, `stopped`, `waits`, `shed`, `not_asked` or `unknown`.
    pub answer: &'static str,
    /// What there is to say about it; often nothing.
    pub why: String,
}

/// What is known.
#[derive(Debug)]
pub struct Known<'a> {
    /// `None`: accounts that nobody has configured are refused, and this is one.
    pub policy: Option<&'a AccountPolicy>,
    /// `None`: there is no database.
    pub facts: Option<&'a Facts>,
    /// What the meter would be asked.
    pub request: Option<&'a JobRequest>,
    /// What it would meet; an error: it does not answer.
    pub standing: Result<&'a Standing, String>,
    /// The present instant.
    pub now: Timestamp,
}

/// What one gate makes of a job that it does not let pass.
#[derive(Clone)]
struct Stop {
    answer: &'static str,
    why: String,
    kind: &'static str,
    verdict: String,
}

impl Stop {
    fn ended(outcome: Outcome, why: impl Into<String>) -> Self {
        let reason = outcome.reason();
        let verdict = if reason.is_empty() {
            format!("it would end as {}", outcome.as_str())
        } else {
            format!("it would be {}: {reason}", outcome.as_str())
        };
        Self {
            answer: "stopped",
            why: why.into(),
            kind: outcome.as_str(),
            verdict,
        }
    }

    fn shed(door: Door, why: String) -> Self {
        let would = match door {
            Door::Api => "it would be turned away, to be sent again in a second",
            Door::Worker | Door::Paid { .. } => {
                "it would go back to its queue and be asked again in a second"
            }
        };
        Self {
            answer: "shed",
            verdict: format!("{would}: {why}"),
            why,
            kind: "shed",
        }
    }

    /// An API server answers it as it was answered before.
    fn accepted_before(why: &str) -> Self {
        Self {
            answer: "stopped",
            why: why.to_owned(),
            kind: "repeat",
            verdict: "it has been accepted already, and would not be sent again".to_owned(),
        }
    }

    fn sent(record: &SentRecord) -> Self {
        let at = i64::try_from(record.at_ms).ok();
        let at = at.and_then(|at| Timestamp::from_millisecond(at).ok());
        let at = at.map_or_else(|| "before".to_owned(), |at| format!("at {at:.3}"));
        Self {
            answer: "stopped",
            why: format!("sent {at} by carrier {}", record.carrier),
            kind: "repeat",
            verdict: "it would not be sent again; its first end would be told once more".to_owned(),
        }
    }
}

/// A gate's answer: what it says of a job that passes, or why it does not. `None`: nobody knows.
type Answer = Option<Result<String, Stop>>;

/// Judges what reading a job gave.
#[must_use]
pub fn judge(decoded: &Decoded, known: &Known<'_>) -> Judgement {
    match decoded {
        Decoded::Undecodable { detail, .. } => {
            let stop = Stop {
                verdict: "it would go to the dead queue".to_owned(),
                ..Stop::ended(Outcome::Dead, detail)
            };
            of_answers(None, None, |_| Some(Err(stop.clone())))
        }
        Decoded::Invalid {
            head,
            field,
            detail,
        } => {
            let refused = Outcome::Refused(Refusal::Invalid(*field));
            let why = format!("{}: {detail}", field.as_str());
            of_answers(Some(head), None, |_| Some(Err(Stop::ended(refused, &*why))))
        }
        Decoded::Job(job) => judge_job(job, known),
    }
}

/// Judges a job that could be read.
#[must_use]
pub fn judge_job(job: &Job, known: &Known<'_>) -> Judgement {
    of_answers(Some(&job.head), policy(job, known), |gate| {
        answer(gate, job, known)
    })
}

/// Asks gate after gate until one does not let the job pass.
fn of_answers(
    head: Option<&JobHead>,
    policy: Option<String>,
    mut ask: impl FnMut(Gate) -> Answer,
) -> Judgement {
    let mut gates = Vec::new();
    let mut end: Option<Stop> = None;
    let mut unknown = false;
    for gate in Gate::ALL {
        let (answer, why) = if end.is_some() {
            ("not_asked", String::new())
        } else {
            match ask(gate) {
                Some(Ok(why)) => ("passed", why),
                Some(Err(stop)) => {
                    let said = (stop.answer, stop.why.clone());
                    end = Some(stop);
                    said
                }
                None => {
                    unknown = true;
                    ("unknown", String::new())
                }
            }
        };
        gates.push(Step {
            gate: gate.as_str(),
            answer,
            why,
        });
    }
    let (verdict_kind, verdict) = match end {
        Some(stop) => (stop.kind, stop.verdict),
        None if unknown => (
            "unknown",
            "Redis does not answer: each process would count by itself, let frequency caps pass, \
             and let it through if its own counter allows"
                .to_owned(),
        ),
        None => ("send", "it would be sent".to_owned()),
    };
    Judgement {
        id: head.map(|head| head.id.to_string()),
        account_id: head.map(|head| head.account.to_string()),
        lane: head.map(|head| head.lane.as_str()),
        lane_rule: head.map(|head| head.lane_rule.as_str()),
        policy,
        gates,
        verdict_kind,
        verdict,
    }
}

fn policy(job: &Job, known: &Known<'_>) -> Option<String> {
    let ceilings = known.policy?.ceilings;
    Some(format!(
        "{} messages/s, of which marketing {}; this job's lane: {}",
        ceilings.of_lane(Lane::Transactional),
        ceilings.of_lane(Lane::Marketing),
        ceilings.of_lane(job.lane()),
    ))
}

fn answer(gate: Gate, job: &Job, known: &Known<'_>) -> Answer {
    match gate {
        Gate::Fields => Some(Ok(String::new())),
        Gate::Expiry => Some(expiry(job, known.now)),
        Gate::Account => Some(match known.policy {
            Some(_) => Ok(String::new()),
            None => Err(Stop::ended(
                Outcome::Refused(Refusal::UnknownAccount),
                "nobody has configured it",
            )),
        }),
        Gate::Suppression => chain(ChainGate::Suppression, job, known),
        Gate::Holds => chain(ChainGate::Hold, job, known),
        Gate::NotBefore => chain(ChainGate::NotBefore, job, known),
        Gate::QuietHours => chain(ChainGate::QuietHours, job, known),
        Gate::SentBefore => match chain(ChainGate::Ledger, job, known)? {
            Ok(_) => Some(claim(known.request?.door, known.standing.as_ref().ok()?)),
            stopped => Some(stopped),
        },
        Gate::FrequencyCaps => Some(caps(known.request?, known.standing.as_ref().ok()?)),
        Gate::Ceilings => {
            let (request, standing) = (known.request?, known.standing.as_ref().ok()?);
            Some(ceilings(job, known.policy?, request, standing))
        }
    }
}

fn expiry(job: &Job, now: Timestamp) -> Result<String, Stop> {
    match job.expires_at {
        Some(at) if job.is_expired(now) => {
            Err(Stop::ended(Outcome::Expired, format!("since {at:.3}")))
        }
        Some(at) => Ok(format!("at {at:.3}")),
        None => Ok("never".to_owned()),
    }
}

/// The gates that a worker asks before the meter.
fn chain(gate: ChainGate, job: &Job, known: &Known<'_>) -> Answer {
    let case = Case {
        job,
        policy: known.policy?,
        facts: known.facts,
        now: known.now,
    };
    Some(match gate.judge(case) {
        None if known.facts.is_none() && needs_database(gate) => {
            Ok("there is no database: everybody passes".to_owned())
        }
        None => Ok(String::new()),
        Some(TurnedAway::Ended {
            outcome,
            detail,
            next_allowed_at,
        }) => Err(ended(outcome, detail.as_deref(), next_allowed_at)),
        Some(TurnedAway::Waits(reason, due)) => Err(waits(reason.as_str(), &due)),
        Some(TurnedAway::Sent(record)) => Err(Stop::sent(&record)),
    })
}

const fn needs_database(gate: ChainGate) -> bool {
    matches!(
        gate,
        ChainGate::Suppression | ChainGate::Hold | ChainGate::Ledger
    )
}

fn ended(outcome: Outcome, detail: Option<&str>, next: Option<Timestamp>) -> Stop {
    let next = next.map(|next| format!("next allowed at {next:.3}"));
    let why = [detail.map(str::to_owned), next];
    let why: Vec<_> = why.into_iter().flatten().collect();
    Stop::ended(outcome, why.join("; "))
}

fn waits(reason: &str, due: &Due) -> Stop {
    let until = match due {
        Due::At(at) => format!("until {at:.3}"),
        Due::Resumed => "until nothing that it belongs to is paused".to_owned(),
        Due::InTurn(ceiling) => format!("for its turn at {} per second", ceiling.per_second),
    };
    Stop {
        answer: "waits",
        verdict: format!("it would wait {until}, because of {reason}"),
        why: until,
        kind: "wait",
    }
}

fn claim(door: Door, standing: &Standing) -> Result<String, Stop> {
    match (&standing.claim, door) {
        (ClaimNow::Sent(record), _) => Err(Stop::sent(record)),
        (ClaimNow::Admitted { .. }, Door::Api) => Err(Stop::accepted_before("it is queued")),
        (ClaimNow::UnderWay | ClaimNow::Unfinished, Door::Api) => {
            Err(Stop::accepted_before("a try of it has begun"))
        }
        (ClaimNow::UnderWay, _) => Err(Stop::shed(
            door,
            "another try of it is under way".to_owned(),
        )),
        (ClaimNow::Free | ClaimNow::Admitted { .. } | ClaimNow::Unfinished, _) => Ok(String::new()),
    }
}

fn caps(request: &JobRequest, standing: &Standing) -> Result<String, Stop> {
    let mut passed = Vec::new();
    for (cap, now) in request.caps.iter().zip(&standing.caps) {
        let CapNow { counted, holds_job } = *now;
        let said = format!(
            "{}: {counted} of {} in {:?}",
            cap.key.cap, cap.limit, cap.window
        );
        if counted >= cap.limit && !holds_job {
            let capped = Outcome::Refused(Refusal::FrequencyCap);
            return Err(Stop::ended(capped, said));
        }
        passed.push(said);
    }
    Ok(passed.join(", "))
}

fn ceilings(
    job: &Job,
    policy: &AccountPolicy,
    request: &JobRequest,
    standing: &Standing,
) -> Result<String, Stop> {
    let number = request.number.as_ref();
    let number = number.map(|one| ("its number", standing.number, one.per_second));
    let service = request.service.as_ref();
    let service = service.map(|one| ("its service", standing.service, one.per_second));
    let lane = (
        "its lane",
        standing.account,
        policy.ceilings.of_lane(job.lane()),
    );
    let mut passed = Vec::new();
    for (what, count, ceiling) in number.into_iter().chain(service).chain([lane]) {
        // The other lane may have pushed the counter beyond this one's ceiling.
        let used = count.min(ceiling);
        let said = format!("{what}: {used} of {ceiling} in this second");
        if count >= ceiling {
            return Err(Stop::shed(request.door, said));
        }
        passed.push(said);
    }
    Ok(passed.join(", "))
}
