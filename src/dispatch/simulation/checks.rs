//! The rules, checked against what the outside world saw of a run.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tokio::time::Instant;

use super::plan::{Kind, PlannedJob};
use super::run::Report;
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
        Kind::Plain | Kind::Misplaced => told == ["dispatched"],
        Kind::Rejected => told == ["failed"],
        Kind::Invalid => told == ["refused"],
        Kind::Garbage => told.is_empty(),
        Kind::ShortLived => told == ["dispatched"] || told == ["expired"],
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
