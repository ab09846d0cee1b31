//! The lanes as a table.

use std::fmt::Write as _;

use crate::cli::escape;
use crate::cli::tables::grid::{Grid, or_dash};
use crate::overview::{LaneView, LanesView, LatencyView, Missing};

/// Clears the terminal, so that what follows stands in the place of what stood there before.
const CLEAR: &str = "\u{1b}[H\u{1b}[J";

const FOOT: &str = "
QUEUED: of this account, in its own queue, in the hands of workers or waiting in the database.
OWN QUEUE: of these, in the queue that it has to itself; - where it shares the lane's, or where these
settings name no database, which lists such queues. AT BROKER: of all accounts. P50/P99: from being
queued until a carrier had taken a message, in the last minute.
";

/// The text in the place of what a terminal showed before; elsewhere below it.
pub(super) fn over(text: &str) -> String {
    use std::io::IsTerminal as _;
    if std::io::stdout().is_terminal() {
        [CLEAR, text].concat()
    } else {
        format!("{text}\n")
    }
}

/// Everything that is known.
pub(super) fn lanes(view: &LanesView) -> String {
    let mut text = head(view);
    let head = [
        "LANE",
        "LIMIT",
        "SENT/MIN",
        "SHED/MIN",
        "REFUSED/MIN",
        "QUEUED",
        "OWN QUEUE",
        "OLDEST",
        "AT BROKER",
        "P50/P99",
    ];
    let mut grid = Grid::new(head);
    for column in 1..9 {
        grid = grid.right(column);
    }
    for lane in &view.lanes {
        grid.add(row(lane));
    }
    text.push_str(&grid.take());
    text.push_str(FOOT);
    for hold in &view.paused {
        let reason = hold.reason.as_ref().map(|reason| format!(": {reason}"));
        let reason = reason.unwrap_or_default();
        let line = format!("{} {} {}{reason}", hold.state, hold.kind, hold.id);
        text.push_str(&escape::line(&line));
        text.push('\n');
    }
    text
}

fn head(view: &LanesView) -> String {
    let LanesView {
        budget_per_second: budget,
        reserve_per_second: reserve,
        meter,
        ..
    } = view;
    let used = or_dash(meter.used);
    let mut text = format!(
        "{}: {used} of {budget} in this window; {reserve} of them kept for the transactional lane\n",
        view.account_id
    );
    if meter.mode == "local" {
        text.push_str("Redis does not answer or takes no writes: each process counts for itself\n");
    }
    for missing in &view.missing {
        let what = match missing {
            Missing::Redis => "Redis does not answer: the last minute is not known",
            Missing::Database => {
                "the database does not answer: what waits and what is paused is not known"
            }
            Missing::Broker => {
                "the broker does not answer: the lengths of its queues are not known"
            }
        };
        writeln!(text, "{what}").expect("writing to a text does not fail");
    }
    text.push('\n');
    text
}

fn row(lane: &LaneView) -> [String; 10] {
    let oldest = lane.oldest_seconds.map(|seconds| format!("{seconds} s"));
    [
        lane.lane.to_owned(),
        lane.limit.to_string(),
        or_dash(lane.dispatched_last_minute),
        or_dash(lane.shed_last_minute),
        or_dash(lane.refused_last_minute),
        or_dash(lane.queued),
        or_dash(own_queue(lane)),
        or_dash(oldest),
        or_dash(lane.queued_all_accounts),
        or_dash(lane.latency.as_ref().map(took)),
    ]
}

/// What lies in the account's own queue, and how far that has come if it is not simply there.
fn own_queue(lane: &LaneView) -> Option<String> {
    let state = lane.own_queue_state?;
    let jobs = or_dash(lane.in_own_queue);
    Some(if state == "open" {
        jobs
    } else {
        format!("{jobs} ({state})")
    })
}

fn took(latency: &LatencyView) -> String {
    format!("{}/{} ms", millis(latency.p50_ms), millis(latency.p99_ms))
}

/// Beyond this, durations are counted too coarsely to tell one from another.
const COUNTED_EXACTLY_MS: f64 = 10_000.0;

fn millis(took: f64) -> String {
    if took > COUNTED_EXACTLY_MS {
        format!(">{COUNTED_EXACTLY_MS:.0}")
    } else {
        format!("{took:.0}")
    }
}
