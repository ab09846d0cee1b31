//! What is told around the table: what will be seen, and what was seen.

use super::play::Ending;
use super::scenario::Scenario;
use super::words::{count, grouped, millis, wrapped};
use crate::domain::{Ceilings, Lane};

/// What the worked example is about to show.
#[must_use]
pub fn opening(account: &str, scenario: Scenario, ceilings: Ceilings, workers: usize) -> String {
    let text = format!(
        "{} {} {} Nothing leaves this process: the queues and the counter are in memory, and the \
         carrier only pretends.",
        budget(account, ceilings),
        offers(scenario),
        sharing(workers)
    );
    wrapped(&text, 0)
}

/// `Account demo may send 100 messages a second; 20 of them are kept for passwords.`
#[must_use]
pub fn budget(account: &str, ceilings: Ceilings) -> String {
    let budget = ceilings.of_lane(Lane::Transactional);
    let kept = budget - ceilings.of_lane(Lane::Marketing);
    let are = if kept == 1 { "is" } else { "are" };
    format!(
        "Account {account} may send {} a second, {} of which {are} kept for one-time passwords.",
        count(budget.into(), "message"),
        grouped(kept.into())
    )
}

fn offers(scenario: Scenario) -> String {
    let Scenario {
        seconds,
        campaign,
        passwords,
    } = scenario;
    let campaign = match campaign {
        0 => "No campaign is running.".to_owned(),
        some => format!("A campaign offers {} a second.", grouped(some.into())),
    };
    let passwords = match passwords {
        0 => "No passwords are asked for.".to_owned(),
        1 => "From the second second on a password a second comes too.".to_owned(),
        some => format!(
            "From the second second on {} passwords a second come too.",
            grouped(some.into())
        ),
    };
    format!("{campaign} {passwords} After {seconds} seconds nothing more is offered.")
}

/// Who takes the jobs.
#[must_use]
pub fn sharing(workers: usize) -> String {
    match workers {
        1 => "One worker sends them.".to_owned(),
        some => format!("{some} workers send them, and share one counter."),
    }
}

/// What the worked example has shown, in two sentences.
#[must_use]
pub fn closing(scenario: Scenario, ceilings: Ceilings, ending: &Ending) -> String {
    let lanes = format!(
        "{}, and {}.",
        campaign_got(scenario, ceilings, ending),
        passwords_got(ending)
    );
    [lanes, in_all(ending)]
        .map(|sentence| wrapped(&sentence, 0))
        .join("\n")
}

fn campaign_got(scenario: Scenario, ceilings: Ceilings, ending: &Ending) -> String {
    if scenario.campaign == 0 {
        return "No campaign was offered".to_owned();
    }
    format!(
        "The campaign offered {} a second and got at most {} of them out in any second counted \
         (its ceiling is {})",
        grouped(scenario.campaign.into()),
        grouped(ending.record.windows.most_of(Lane::Marketing).into()),
        grouped(ceilings.of_lane(Lane::Marketing).into())
    )
}

fn passwords_got(ending: &Ending) -> String {
    let record = &ending.record;
    let place = Lane::Transactional.index();
    let (offered, dispatched) = (record.offered[place], record.dispatched[place]);
    let left = match (offered, dispatched) {
        (0, _) => return "no passwords were offered".to_owned(),
        (all, left) if all == left => format!("all {} left", count(all, "password")),
        (all, left) => format!("{} of {} left", grouped(left), count(all, "password")),
    };
    match record.latency {
        Some(latency) => format!(
            "{left}, half of them within {} ms, the slowest after {} ms",
            millis(latency.median),
            millis(latency.max)
        ),
        None => left,
    }
}

/// `Of 2,105 messages offered 1,117 were dispatched (437 + 680 by worker) and 988 are still waiting;
/// none was lost or sent twice.`
#[must_use]
pub fn in_all(ending: &Ending) -> String {
    let record = &ending.record;
    let sum = |by_lane: [u64; 2]| by_lane.iter().sum::<u64>();
    let fate = match (record.lost, record.doubled) {
        (0, 0) => "none was lost or sent twice".to_owned(),
        (lost, 0) => format!("{} LOST", grouped(lost)),
        (lost, doubled) => format!("{} LOST and {} DOUBLED", grouped(lost), grouped(doubled)),
    };
    let stopped = if ending.interrupted {
        format!(
            "Stopped after {} s, before the end. ",
            ending.lasted.as_secs()
        )
    } else {
        String::new()
    };
    format!(
        "{stopped}Of {} offered {} were dispatched{} and {} are still waiting; {fate}.",
        count(sum(record.offered), "message"),
        grouped(sum(record.dispatched)),
        shares(&record.by_worker),
        grouped(sum(record.waiting))
    )
}

/// How the workers shared the work: each one's part, or the least and the most of many.
fn shares(by_worker: &[u64]) -> String {
    let parts: Vec<_> = by_worker.iter().map(|sent| grouped(*sent)).collect();
    match (by_worker.iter().min(), by_worker.iter().max()) {
        _ if parts.len() < 2 => String::new(),
        (Some(least), Some(most)) if parts.len() > 4 => {
            let (least, most) = (grouped(*least), grouped(*most));
            format!(" ({least} to {most} by each of {} workers)", parts.len())
        }
        _ => format!(" ({} by worker)", parts.join(" + ")),
    }
}
