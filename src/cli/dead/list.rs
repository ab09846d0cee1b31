//! `lanekeeper dead list`: what is there.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::Timestamp;

use crate::intake::dead::{DeadQueue, Facts, Fate};

use super::line::Line;
use super::problem::Problem;
use super::report::{interrupted, print};
use super::select::{Ages, Selection};
use super::{CARRIED_OUT, NOT_FINISHED, table};
use crate::cli::escape;

/// The most reasons that are counted by name: they come from outside.
const MOST_REASONS: usize = 50;

/// What to list.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only messages with this reason
    #[arg(long)]
    pub reason: Option<String>,
    #[command(flatten)]
    pub ages: Ages,
    /// Only messages in which this job id can be made out
    #[arg(long, value_name = "JOBID")]
    pub id: Option<String>,
    /// The most messages to show; the others are only counted
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    pub limit: usize,
    /// Print one JSON object per message instead of a table
    #[arg(long)]
    pub json: bool,
}

/// Lists messages in the order in which they stand in the queue.
pub(super) async fn run(args: Args, queue: &DeadQueue, now: Timestamp) -> Result<u8, Problem> {
    let selection = Selection::of(args.reason, args.ages, now);
    let mut found = Found::default();
    let passed = queue.pass(|letter| {
        found.total += 1;
        let fits = args.id.is_none() || letter.facts.id == args.id;
        if fits && selection.holds(&letter.facts) {
            found.add(&letter.facts, args.limit);
        } else if fits && selection.misses_for_its_age(&letter.facts) {
            found.ageless += 1;
        }
        Fate::Stay
    });
    let end = passed.await.end?;
    if args.json {
        print(&lines(&found.shown, now))?;
    } else {
        print(&found.table(now))?;
    }
    let early = interrupted(&end);
    if let Some(why) = &early {
        eprintln!("note: {why}: this is not all");
    }
    Ok(early.map_or(CARRIED_OUT, |_| NOT_FINISHED))
}

#[derive(Default)]
struct Found {
    total: u64,
    shown: Vec<Facts>,
    matched: u64,
    /// Left out only because their age is unknown.
    ageless: u64,
    reasons: BTreeMap<String, u64>,
}

impl Found {
    fn add(&mut self, facts: &Facts, limit: usize) {
        self.matched += 1;
        if self.shown.len() < limit {
            self.shown.push(facts.clone());
        }
        let reason = facts.reason.as_deref().unwrap_or("(no reason)");
        let known = self.reasons.contains_key(reason) || self.reasons.len() < MOST_REASONS;
        let reason = if known { reason } else { "(other reasons)" };
        *self.reasons.entry(reason.to_owned()).or_default() += 1;
    }

    fn table(&self, now: Timestamp) -> String {
        if self.total == 0 {
            return "No dead messages: every message could be read.\n".to_owned();
        }
        let mut text = String::new();
        if self.matched == 0 {
            let _ = writeln!(text, "None of {} dead messages matches.", self.total);
        } else if !self.shown.is_empty() {
            text.push_str(&table::of(&self.shown, now));
            text.push('\n');
        }
        self.sum_up(&mut text);
        text
    }

    fn sum_up(&self, text: &mut String) {
        for (reason, count) in &self.reasons {
            let _ = writeln!(text, "{count:>9}  {}", escape::line(reason));
        }
        let more = self.matched - self.shown.len() as u64;
        if more > 0 {
            let _ = writeln!(text, "{more} more; --limit shows more of them");
        }
        if self.ageless > 0 {
            let count = self.ageless;
            let _ = writeln!(text, "{count} of unknown age left out");
        }
    }
}

fn lines(shown: &[Facts], now: Timestamp) -> String {
    let lines = shown.iter().map(|facts| Line::of(facts, now));
    lines.fold(String::new(), |mut text, line| {
        let line = escape::json(&line).expect("texts and numbers can be written as JSON");
        text.push_str(&line);
        text.push('\n');
        text
    })
}
