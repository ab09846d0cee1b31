//! What is known of a job, for people.

use std::fmt::Write as _;

use jiff::Timestamp;

use super::story::{End, GateAnswer, JobStory, Story, Wait};
use crate::cli::escape;
use crate::judgement::Judgement;
use crate::settings::Settings;

/// Rows of a name and a value.
#[derive(Default)]
struct Rows(String);

impl Rows {
    fn row(&mut self, name: &str, value: &str) {
        let _ = writeln!(self.0, "{name:<13} {}", escape::line(value));
    }

    fn row_if(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.row(name, value);
        }
    }
}

/// Every job of the id, one after the other.
pub(super) fn story(story: &Story, now: Timestamp) -> String {
    let jobs = story.jobs.iter();
    let jobs: Vec<_> = jobs.map(|job| job_story(&story.id, job, now)).collect();
    jobs.join("\n")
}

fn job_story(id: &str, job: &JobStory, now: Timestamp) -> String {
    let mut rows = Rows::default();
    rows.row("job", &format!("{id} of {}", job.account_id));
    for wait in &job.waits {
        waits(&mut rows, wait, now);
    }
    for end in &job.ends {
        ended(&mut rows, end);
    }
    rows.0
}

fn waits(rows: &mut Rows, wait: &Wait, now: Timestamp) {
    let due = match &wait.due_at {
        Some(due) => format!("until {due}{}", in_time(due, now)),
        None => "for a decision".to_owned(),
    };
    rows.row("waits", &format!("{due}, because of {}", wait.reason));
    rows.row_if("holds", holds(wait).as_deref());
    rows.row_if("expires", expiry(wait, now).as_deref());
    rows.row_if("since", wait.since.as_deref());
    rows.row("lane", &wait.lane);
    let scopes = [&wait.campaign_id, &wait.journey_id, &wait.batch_id];
    belongs(rows, scopes.map(Option::as_deref));
    rows.row(
        "so far",
        &format!(
            "{}, {}",
            times(wait.attempts, "try", "tries"),
            times(wait.sheds, "shed", "sheds")
        ),
    );
}

/// Holds on what it belongs to. None are worth a word where the job waits for their end.
fn holds(wait: &Wait) -> Option<String> {
    if wait.holds.is_empty() {
        let none = "none any more: it goes within two seconds, at its ceiling's rate";
        return wait.due_at.is_none().then(|| none.to_owned());
    }
    let mut holds = wait.holds.join(", ");
    if wait.holds.iter().any(|hold| hold.ends_with(": cancelled")) {
        holds += "; it ends as cancelled, at its ceiling's rate";
    }
    Some(holds)
}

/// When the job becomes worthless, and what follows from that.
fn expiry(wait: &Wait, now: Timestamp) -> Option<String> {
    let expires = wait.expires_at.as_deref()?;
    let instant = |text: &str| text.parse::<Timestamp>().ok();
    let (at, due) = (instant(expires), wait.due_at.as_deref().map(instant));
    let consequence = if at <= Some(now) || due.is_some_and(|due| due >= at) {
        "; it ends as expired, but not before it is released"
    } else if due.is_none() {
        "; released later than that, it ends as expired"
    } else {
        ""
    };
    Some(format!("{expires}{consequence}"))
}

/// What is left of the wait, or that it is over.
fn in_time(due: &str, now: Timestamp) -> String {
    let Ok(due) = due.parse::<Timestamp>() else {
        return String::new();
    };
    match due.as_second() - now.as_second() {
        ..=0 => " (now: it goes at its ceiling's rate)".to_owned(),
        seconds @ 1..=119 => format!(" (in {seconds} s)"),
        seconds @ 120..=7_199 => format!(" (in {} min)", seconds / 60),
        seconds @ 7_200..=172_799 => format!(" (in {} h)", seconds / 3_600),
        seconds => format!(" (in {} days)", seconds / 86_400),
    }
}

fn ended(rows: &mut Rows, end: &End) {
    let outcome = match &end.reason {
        Some(reason) => format!("{}: {reason}", end.outcome),
        None => end.outcome.clone(),
    };
    rows.row("outcome", &outcome);
    rows.row_if("detail", end.detail.as_deref());
    rows.row(
        "lane",
        &format!("{}, {}", end.lane, why_lane(&end.lane_rule)),
    );
    rows.row_if("origin", end.origin.as_deref());
    let scopes = [&end.campaign_id, &end.journey_id, &end.batch_id];
    belongs(rows, scopes.map(Option::as_deref));
    rows.row("channel", &end.channel);
    rows.row_if("recipient", end.recipient.as_deref());
    gates(rows, &end.gates);
    counted(rows, end);
    tries(rows, end);
    rows.row_if("queued", end.enqueued_at.as_deref());
    rows.row_if("admitted", end.admitted_at.as_deref());
    rows.row_if("settled", end.settled_at.as_deref());
    rows.row_if("next allowed", end.next_allowed_at.as_deref());
}

/// Why a job is in its lane.
fn why_lane(rule: &str) -> String {
    match rule {
        "traffic_lane" => "named by metadata.traffic_lane".to_owned(),
        "priority" => "by its priority".to_owned(),
        "origin" => "by its origin".to_owned(),
        "default" => "because nothing else decided".to_owned(),
        other => format!("by {other}"),
    }
}

fn belongs(rows: &mut Rows, [campaign, journey, batch]: [Option<&str>; 3]) {
    rows.row_if("campaign", campaign);
    rows.row_if("journey", journey);
    rows.row_if("batch", batch);
}

/// The gates that gave the same answer stand together; the answers come in the gates' order.
fn gates(rows: &mut Rows, gates: &[GateAnswer]) {
    let mut name = "gates";
    for run in gates.chunk_by(|a, b| a.answer == b.answer) {
        let names: Vec<_> = run.iter().map(|step| step.gate).collect();
        let answer = run[0].answer.replace('_', " ");
        rows.row(name, &format!("{answer:<10} {}", names.join(", ")));
        name = "";
    }
}

fn counted(rows: &mut Rows, end: &End) {
    let Some(place) = end.admitted_as else {
        return;
    };
    let whose = match end.meter.as_deref() {
        Some("local") => "by its worker's own counter, while Redis was away",
        _ => "by the counter that all workers share",
    };
    rows.row(
        "counted",
        &format!("as number {place} of its second, {whose}"),
    );
}

fn tries(rows: &mut Rows, end: &End) {
    let mut text = times(end.attempts, "try", "tries");
    if let Some(carrier) = &end.carrier {
        let _ = write!(text, " at carrier {carrier}");
    }
    if let Some(reference) = &end.carrier_ref {
        let _ = write!(text, ", its reference {reference}");
    }
    rows.row("tries", &text);
    rows.row("sheds", &end.sheds.to_string());
}

fn times(count: i32, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// What it may mean that nothing is known.
pub(super) fn nothing_known(story: &Story, settings: &Settings) -> String {
    let retention = match settings.ledger.retention {
        Some(kept) => format!("it ended more than {} days ago", kept.as_secs() / 86_400),
        None => "the ledger was emptied".to_owned(),
    };
    format!(
        "nothing is known of job {}: it is still queued or in the hands of a worker, or it was never \
         queued, or it could not be read (lanekeeper dead list), or {retention}",
        story.id
    )
}

/// What would become of a job.
pub(super) fn judgement(judgement: &Judgement) -> String {
    let mut rows = Rows::default();
    if let (Some(id), Some(account)) = (&judgement.id, &judgement.account_id) {
        rows.row("job", &format!("{id} of {account}"));
    }
    if let (Some(lane), Some(rule)) = (judgement.lane, judgement.lane_rule) {
        rows.row("lane", &format!("{lane}, {}", why_lane(rule)));
    }
    rows.row_if("account", judgement.policy.as_deref());
    let mut name = "gates";
    for step in &judgement.gates {
        let answer = step.answer.replace('_', " ");
        let line = format!("{:<15} {answer:<10} {}", step.gate, step.why);
        rows.row(name, line.trim_end());
        name = "";
    }
    rows.row("now", &judgement.verdict);
    rows.0
}
