//! The accounts that have queues of their own, as a table.

use std::fmt::Write as _;
use std::time::Duration;

use crate::cli::age;
use crate::cli::tables::grid::{Grid, or_dash};
use crate::cli::tables::output::counted;
use crate::overview::{Drain, DrainedBy, HotAccountView, HotView, Missing};

const WITHOUT_DATABASE: &str = "\
These settings name no database (database.url), and which accounts have queues of their own is written
down there. If your workers have one, this command needs it too: set LANEKEEPER__DATABASE__URL as for
them. If they have none either, all accounts share their lanes' queues, and a job over its account's
limit goes round by the delay queue until it fits.
";

const NONE: &str = "\
No account has a queue of its own: none has lately had many more jobs than its limit lets through. All
share their lanes' queues; `lanekeeper lanes ACCOUNT` shows how one stands.
";

const FOOT: &str = "
NUMBER: the last part of the queue's name. QUEUED: in the account's own queue (READY) and in the
hands of workers. OLDEST: of those in hand. RATE: sent per second, of the last thirty. DRAINED IN: if
no more comes.
";

/// Everything that is known; `most` is how many such queues there may be.
pub(super) fn accounts(view: &HotView, most: u32) -> String {
    if !view.has_database {
        return WITHOUT_DATABASE.to_owned();
    }
    let mut text = missing(view);
    let Some(queues) = &view.queues else {
        return text;
    };
    if queues.is_empty() {
        text.push_str(NONE);
    } else {
        head(&mut text, queues, most);
        text.push_str(&table(queues));
        text.push_str(FOOT);
    }
    if most == 0 {
        text.push_str(
            "hot.most is 0 in these settings: workers that have them too make no more.\n",
        );
    }
    text
}

fn missing(view: &HotView) -> String {
    let what = |missing: &Missing| match missing {
        Missing::Redis => {
            "Redis does not answer: what workers hold and how fast it goes is not known\n"
        }
        Missing::Database => {
            "the database does not answer: which accounts have queues of their own is not known\n"
        }
        Missing::Broker => "the broker does not answer: the lengths of the queues are not known\n",
    };
    view.missing.iter().map(what).collect()
}

fn head(text: &mut String, queues: &[HotAccountView], most: u32) {
    let count = counted(queues.len() as u64, "queue", "queues");
    let jobs: Option<u64> = queues.iter().map(|queue| queue.queued).sum();
    let jobs = jobs.map(|jobs| format!("; {} in all", counted(jobs, "job", "jobs")));
    let jobs = jobs.unwrap_or_default();
    writeln!(
        text,
        "{count} of accounts' own, {most} at most by these settings{jobs}\n"
    )
    .expect("writing to a text does not fail");
}

fn table(queues: &[HotAccountView]) -> String {
    let mut grid = Grid::new([
        "ACCOUNT",
        "LANE",
        "NUMBER",
        "STATE",
        "QUEUED",
        "READY",
        "OLDEST",
        "RATE",
        "LIMIT",
        "DRAINED IN",
    ]);
    for column in (2..3).chain(4..9) {
        grid = grid.right(column);
    }
    for queue in queues {
        grid.add(row(queue));
    }
    grid.take()
}

fn row(queue: &HotAccountView) -> [String; 10] {
    [
        queue.account_id.clone(),
        queue.lane.to_owned(),
        queue.number.to_string(),
        queue.state.to_owned(),
        or_dash(queue.queued),
        or_dash(queue.in_own_queue),
        or_dash(queue.oldest_seconds.and_then(length)),
        or_dash(queue.dispatched_per_second.map(|rate| format!("{rate:.1}"))),
        or_dash(queue.limit),
        drained(queue.drain),
    ]
}

fn length(seconds: f64) -> Option<String> {
    let length = Duration::try_from_secs_f64(seconds).ok()?;
    Some(age::exact(length))
}

/// `20m50s`, or why there is no end to it.
fn drained(drain: Drain) -> String {
    let seconds = drain.seconds().map(Duration::from_secs);
    let length = seconds.map(age::exact);
    match (drain.by(), length) {
        (Some(DrainedBy::Paused), _) => "never: the account is paused".to_owned(),
        (Some(DrainedBy::LimitIsZero), _) => "never: the limit is 0".to_owned(),
        (Some(DrainedBy::NoConsumer), _) => "never: no worker consumes from it".to_owned(),
        (Some(DrainedBy::Limit), Some(length)) if drain.seconds() > Some(0) => {
            format!("{length} at the limit")
        }
        (_, length) => or_dash(length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(queues: Option<Vec<HotAccountView>>, missing: Vec<Missing>) -> HotView {
        HotView {
            at: "2026-11-30T17:00:00.000Z".to_owned(),
            has_database: true,
            queues,
            missing,
        }
    }

    #[test]
    fn without_any_it_says_what_that_means() {
        let text = accounts(&view(Some(Vec::new()), Vec::new()), 200);
        assert!(text.contains("No account has a queue of its own: none"));
        assert!(!text.contains("hot.most"));
        let text = accounts(&view(Some(Vec::new()), Vec::new()), 0);
        assert!(text.contains("hot.most is 0"));
    }

    #[test]
    fn without_a_database_it_says_why_there_are_none() {
        let nowhere = HotView {
            has_database: false,
            ..view(Some(Vec::new()), Vec::new())
        };
        let text = accounts(&nowhere, 200);
        assert!(
            text.contains("These settings name no database")
                && text.contains("share their lanes' queues")
        );
    }

    #[test]
    fn what_does_not_answer_is_named() {
        let missing = vec![Missing::Redis, Missing::Database, Missing::Broker];
        let text = accounts(&view(None, missing), 200);
        let named = ["Redis", "the database", "the broker"];
        assert!(
            text.lines()
                .zip(named)
                .all(|(line, who)| line.starts_with(who))
        );
        assert_eq!(text.lines().count(), 3);
    }
}
