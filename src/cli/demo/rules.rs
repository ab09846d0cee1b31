//! The rules: what was promised, held against what happened.

use super::play::Ending;
use super::words::{count, grouped, millis};
use crate::domain::{Ceilings, Lane};

/// What a play promises.
#[derive(Debug, Clone)]
pub struct Promises {
    /// The account's ceilings.
    pub ceilings: Ceilings,
    /// Whether every password leaves within a second, and if not, why that cannot be promised.
    pub passwords: Result<(), String>,
}

/// One rule and whether it held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// A short name, in words.
    pub name: &'static str,
    /// Nothing where it was not put to the test.
    pub held: Option<bool>,
    /// The figures behind it.
    pub detail: String,
}

impl Rule {
    fn of(name: &'static str, held: bool, details: &[String]) -> Self {
        Self {
            name,
            held: Some(held),
            detail: details.join(", "),
        }
    }
}

/// Every rule, judged by how the play ended.
#[must_use]
pub fn judge(promises: &Promises, ending: &Ending) -> Vec<Rule> {
    vec![
        budget(promises.ceilings, ending),
        reserve(promises.ceilings, ending),
        passwords(promises, ending),
        nothing_lost(ending),
        nothing_twice(ending),
        sheds_uncounted(ending),
    ]
}

fn budget(ceilings: Ceilings, ending: &Ending) -> Rule {
    let windows = &ending.record.windows;
    let (most, budget) = (windows.most(), ceilings.of_lane(Lane::Transactional));
    let mut details = vec![format!(
        "at most {} of {} admitted in each of {}",
        grouped(most.into()),
        grouped(budget.into()),
        count(windows.count() as u64, "window")
    )];
    if windows.too_many() {
        details.push("which are more than there is time for".to_owned());
    }
    if ending.fallbacks > 0 {
        let uncounted = count(ending.fallbacks, "decision");
        details.push(format!("and {uncounted} made without the shared counter"));
    }
    let held = most <= budget && !windows.too_many() && ending.fallbacks == 0;
    Rule::of("budget", held, &details)
}

fn reserve(ceilings: Ceilings, ending: &Ending) -> Rule {
    let most = ending.record.windows.most_of(Lane::Marketing);
    let ceiling = ceilings.of_lane(Lane::Marketing);
    let detail = format!(
        "at most {} marketing messages in a window, of {}",
        grouped(most.into()),
        grouped(ceiling.into())
    );
    Rule::of("reserve", most <= ceiling, &[detail])
}

fn passwords(promises: &Promises, ending: &Ending) -> Rule {
    let record = &ending.record;
    if let Err(why) = &promises.passwords {
        let detail = format!("not put to the test: {why}");
        return Rule {
            name: "passwords",
            held: None,
            detail,
        };
    }
    let place = Lane::Transactional.index();
    let mut details = vec![format!(
        "{} of {} dispatched",
        grouped(record.dispatched[place]),
        grouped(record.offered[place])
    )];
    if let Some(latency) = record.latency {
        details.push(format!("the slowest after {} ms", millis(latency.max)));
    }
    if record.late > 0 {
        details.push(format!(
            "{} later than the second that is promised",
            grouped(record.late)
        ));
    }
    Rule::of("passwords", record.late == 0, &details)
}

fn nothing_lost(ending: &Ending) -> Rule {
    let record = &ending.record;
    let sum = |by_lane: [u64; 2]| by_lane.iter().sum::<u64>();
    let mut details = vec![format!(
        "{} offered, {} dispatched, {} still waiting",
        grouped(sum(record.offered)),
        grouped(sum(record.dispatched)),
        grouped(sum(record.waiting))
    )];
    if sum(record.ended) > 0 {
        details.push(format!("{} expired or refused", grouped(sum(record.ended))));
    }
    if record.lost > 0 {
        details.push(format!("{} lost", grouped(record.lost)));
    }
    Rule::of("nothing lost", record.lost == 0, &details)
}

fn nothing_twice(ending: &Ending) -> Rule {
    let record = &ending.record;
    let mut details = vec![match record.doubled {
        0 => "no message was sent or queued a second time".to_owned(),
        doubled => count(doubled, "message") + " sent or queued a second time",
    }];
    if record.strangers > 0 {
        let strangers = count(record.strangers, "message");
        details.push(format!("{strangers} sent that nobody offered"));
    }
    let held = record.doubled == 0 && record.strangers == 0;
    Rule::of("nothing twice", held, &details)
}

fn sheds_uncounted(ending: &Ending) -> Rule {
    let sheds = ending.sheds.iter().sum();
    let (miscounted, windows) = (
        ending.record.windows.miscounted(),
        ending.record.windows.count(),
    );
    let detail = if miscounted == 0 {
        format!(
            "{}, and the counter counted none of them",
            count(sheds, "shed")
        )
    } else {
        format!("the counter was not what was admitted in {miscounted} of {windows} windows")
    };
    Rule::of("sheds uncounted", miscounted == 0, &[detail])
}
