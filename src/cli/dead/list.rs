//! `lanekeeper dead list`: what is there.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::Timestamp;

use crate::intake::dead::{DeadQueue, Facts, Fate};

use super::escape;
use super::line::{Line, age};
use super::problem::Problem;
use super::report::{interrupted, print};
use super::select::{Ages, Selection};
use super::{CARRIED_OUT, age as ages};

/// The most reasons that are counted by name: they come from outside.
const MOST_REASONS: usize = 50;

/// The width of a table, in characters.
const WIDTH: usize = 120;

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
    Ok(early.map_or(CARRIED_OUT, |_| 1))
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
            text.push_str(&table(&self.shown, now));
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

/// A table of texts, in columns as wide as they need to be; what was wrong takes what is left.
fn table(shown: &[Facts], now: Timestamp) -> String {
    const HEAD: [&str; 7] = [
        "REFERENCE",
        "AGE",
        "REASON",
        "BYTES",
        "ACCOUNT",
        "JOB ID",
        "DETAIL",
    ];
    const LONGEST: [usize; 6] = [12, 7, 16, 9, 16, 24];
    let cell = |text: Option<&str>, longest: usize| match text {
        Some(text) => escape::cut(&escape::line(text), longest).into_owned(),
        None => "-".to_owned(),
    };
    let rows: Vec<[String; 6]> = shown
        .iter()
        .map(|facts| {
            [
                facts.digest.to_string(),
                ages::show(age(facts, now)),
                cell(facts.reason.as_deref(), LONGEST[2]),
                facts.size.to_string(),
                cell(facts.account.as_deref(), LONGEST[4]),
                cell(facts.id.as_deref(), LONGEST[5]),
            ]
        })
        .collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0).max(HEAD[column].len())
    };
    let widths: [usize; 6] = std::array::from_fn(width);
    let used: usize = widths.iter().map(|width| width + 2).sum();
    let rest = WIDTH.saturating_sub(used).max(HEAD[6].len());
    let mut text = String::new();
    let mut write_row = |cells: [&str; 6], detail: &str| {
        for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
            // Numbers stand to the right.
            let _ = match column {
                3 => write!(text, "{cell:>width$}  "),
                _ => write!(text, "{cell:<width$}  "),
            };
        }
        let _ = writeln!(text, "{detail}");
    };
    let [head @ .., detail] = HEAD;
    write_row(head, detail);
    for (row, facts) in rows.iter().zip(shown) {
        let cells = row.each_ref().map(String::as_str);
        write_row(cells, &cell(facts.detail.as_deref(), rest));
    }
    text
}
