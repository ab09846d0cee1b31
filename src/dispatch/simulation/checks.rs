//! The rules, checked against what the outside world saw of a run.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tokio::time::Instant;

use super::plan::{Kind, PlannedJob};
use super::run::{PAUSED_FOR, Report};
use crate::domain::{AccountId, Lane};

type Check = Result<(), String>;

fn ensure(holds: bool, broken: impl FnOnce() -> String) -> Check {
    if holds { Ok(()) } else { Err(broken()) }
}

/// Rule 9: each job ends, in the one outcome that is its own, and nothing is left anywhere.
pub fn everything_ends(report: &Report) -> Check {
    ensure(!report.stuck, || "jobs are left in the queues".into())?;
    let mut outcomes: HashMap<&str, HashSet<&str>> = HashMap::new();
    for (id, outcome) in &report.told {
        outcomes.entry(id).or_default().insert(outcome);
    }
    for (place, job) in report.plan.jobs.iter().enumerate() {
        let told = outcomes
            .get(place.to_string().as_str())
            .cloned()
            .unwrap_or_default();
        let told: Vec<_> = told.into_iter().collect();
        ensure(may_end(job, &told), || {
            format!("job {place} ({:?}) ended as {told:?}", job.kind)
        })?;
    }
    let garbage = report
        .plan
        .jobs
        .iter()
        .filter(|job| job.kind == Kind::Garbage)
        .count();
    ensure(report.dead >= garbage, || {
        format!("{} of {garbage} lie in the dead queue", report.dead)
    })
}

fn may_end(job: &PlannedJob, told: &[&str]) -> bool {
    match job.kind {
        Kind::Plain | Kind::Misplaced | Kind::Paused | Kind::Later => told == ["dispatched"],
        Kind::Rejected => told == ["failed"],
        Kind::Invalid | Kind::OptedOut => told == ["refused"],
        Kind::Garbage => told.is_empty(),
        Kind::ShortLived => told == ["dispatched"] || told == ["expired"],
        Kind::Cancelled => told == ["cancelled"],
        // A job that was sent, and whose acknowledgement was lost, may be refused when it comes again.
        Kind::OptsOut => {
            !told.is_empty()
                && told
                    .iter()
                    .all(|one| ["dispatched", "refused"].contains(one))
        }
    }
}

/// Rules 2 and 4: in no window of the shared counter were more jobs admitted than a lane's ceiling
/// allows, both lanes counted together.
pub fn ceilings_hold(report: &Report) -> Check {
    let mut windows: HashMap<&AccountId, (Instant, u32)> = HashMap::new();
    for admission in &report.seen.admissions {
        let (opened, count) = windows
            .entry(&admission.account)
            .or_insert((admission.at, 0));
        if admission.at.duration_since(*opened) >= Duration::from_secs(1) {
            (*opened, *count) = (admission.at, 0);
        }
        *count += 1;
        let ceiling = ceiling_of(report, &admission.account, admission.lane);
        ensure(*count <= ceiling, || {
            format!(
                "{} is admitted as number {count} of {ceiling}",
                admission.lane
            )
        })?;
    }
    Ok(())
}

fn ceiling_of(report: &Report, account: &AccountId, lane: Lane) -> u32 {
    let place: usize = account.as_str().trim_start_matches('a').parse().unwrap();
    report.plan.ceilings[place].of_lane(lane)
}

/// Rule 5: without the shared counter each process keeps the ceilings by itself. Over any stretch
/// of time, the calls are no more than the windows in it allow, for each worker and once more for
/// each one that was started anew.
pub fn local_ceilings_hold(report: &Report) -> Check {
    let processes = report.plan.workers + report.plan.blows.len();
    let windows = usize::try_from(report.lasted.as_secs()).unwrap() + 2;
    let mut calls: HashMap<&AccountId, usize> = HashMap::new();
    for call in &report.seen.calls {
        *calls.entry(&call.account).or_default() += 1;
    }
    for (account, calls) in calls {
        let allowed =
            ceiling_of(report, account, Lane::Transactional) as usize * windows * processes;
        ensure(calls <= allowed, || {
            format!("{calls} calls where {allowed} are allowed")
        })?;
    }
    Ok(())
}

/// Rule 6: no carrier has more jobs than slots, and marketing never the share that is kept.
pub fn slots_hold(report: &Report) -> Check {
    ensure(report.seen.overfull.is_empty(), || {
        format!("slots overfull: {:?}", report.seen.overfull)
    })
}

/// Rule 4: what is admitted starts within 50 ms.
pub fn admitted_jobs_start_at_once(report: &Report) -> Check {
    let latest = report.seen.latest_start;
    ensure(latest <= Duration::from_millis(50), || {
        format!("a job started {latest:?} after its admission")
    })
}

/// Rule 9: without a fault no recipient gets a message twice.
pub fn nothing_is_sent_twice(report: &Report) -> Check {
    let repeats = repeats(report);
    ensure(repeats == 0, || format!("{repeats} jobs were sent again"))
}

/// Rule 9: where a second send cannot be prevented, it is counted.
pub fn duplicates_are_counted(report: &Report) -> Check {
    let repeats = repeats(report) as u64;
    let counted = report.possible_duplicates;
    ensure(repeats <= counted, || {
        format!("{repeats} jobs were sent again, {counted} counted")
    })
}

fn repeats(report: &Report) -> usize {
    let mut accepted = HashMap::new();
    for call in report.seen.calls.iter().filter(|call| call.accepted) {
        *accepted.entry(&call.id).or_insert(0_usize) += 1;
    }
    accepted.values().map(|times| times - 1).sum()
}

/// A carrier that has asked a process for a wait gets it, for that account and lane.
pub fn waits_are_kept(report: &Report) -> Check {
    let impatient = &report.seen.impatient;
    ensure(impatient.is_empty(), || {
        format!("tried again too soon: {impatient:?}")
    })
}

/// Rule 8: nothing is sent unchecked, nor after an opt-out was written.
pub fn nothing_is_sent_unchecked(report: &Report) -> Check {
    let unchecked = &report.seen.unchecked;
    ensure(unchecked.is_empty(), || {
        format!("sent without a look-up: {unchecked:?}")
    })
}

/// What is paused, or to be sent later, is not sent before.
pub fn nothing_is_sent_early(report: &Report) -> Check {
    for call in &report.seen.calls {
        let place: usize = call.id.parse().unwrap();
        let job = &report.plan.jobs[place];
        let earliest = match job.kind {
            Kind::Paused => PAUSED_FOR,
            Kind::Later => job.at + Duration::from_secs(2),
            _ => continue,
        };
        let at = call.at.duration_since(report.started);
        ensure(at >= earliest, || format!("job {place} was sent at {at:?}"))?;
    }
    Ok(())
}

/// With a database each job that has ended has its row, and the row says what the world was told.
pub fn the_ledger_is_right(report: &Report) -> Check {
    if !report.plan.records {
        return Ok(());
    }
    for (place, job) in report.plan.jobs.iter().enumerate() {
        let entry: Vec<_> = report.entries[place].into_iter().collect();
        // A worker that dies takes what it kept for the ledger with it.
        let was_sent = report
            .told
            .iter()
            .any(|(id, outcome)| outcome == "dispatched" && *id == place.to_string());
        let is_kept = job.lane == Lane::Transactional || was_sent;
        let may_be_lost = is_kept && !report.plan.blows.is_empty();
        if entry.is_empty() && may_be_lost {
            continue;
        }
        ensure(may_end(job, &entry), || {
            format!("the ledger says {entry:?} of job {place} ({:?})", job.kind)
        })?;
        let sent = report
            .seen
            .calls
            .iter()
            .any(|call| call.accepted && call.id == place.to_string());
        let is_dispatched = entry == ["dispatched"];
        ensure(!is_dispatched || sent, || {
            format!("the ledger says of job {place} that it was sent")
        })?;
    }
    Ok(())
}

/// Rule 6: drain order.
pub fn transactional_goes_first(report: &Report) -> Check {
    ensure(report.seen.out_of_order.is_empty(), || {
        report.seen.out_of_order.join("; ")
    })
}

/// Rule 5: no decision falls open while the shared counter answers.
pub fn no_decision_fell_open(report: &Report) -> Check {
    ensure(report.fallbacks == 0, || {
        format!("{} decisions fell open", report.fallbacks)
    })
}
