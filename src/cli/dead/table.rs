//! Dead messages as a table, in columns as wide as they need to be.

use std::fmt::Write as _;
use std::io::stdout;

use jiff::Timestamp;

use crate::intake::dead::Facts;

use super::line::age as age_of;
use crate::cli::age;
use crate::cli::escape;

const HEAD: [&str; 7] = [
    "REFERENCE",
    "AGE",
    "REASON",
    "BYTES",
    "ACCOUNT",
    "JOB ID",
    "DETAIL",
];

/// The place of what was wrong, which takes the width that is left.
const DETAIL: usize = 6;

/// The place of the numbers, which stand to the right.
const BYTES: usize = 3;

/// The longest reason and account, and the longest id, in characters.
const LONGEST: usize = 16;
const LONGEST_ID: usize = 24;

/// The width of the table where there is no terminal, in characters.
const WIDTH: usize = 120;

type Row = [String; HEAD.len()];

/// A head and a line for each message, as wide as the terminal.
pub(super) fn of(shown: &[Facts], now: Timestamp) -> String {
    let terminal = terminal_size::terminal_size_of(stdout());
    within(
        terminal.map_or(WIDTH, |(width, _)| width.0.into()),
        shown,
        now,
    )
}

fn within(width: usize, shown: &[Facts], now: Timestamp) -> String {
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(shown.iter().map(|facts| row(facts, now)));
    let mut widths: [usize; HEAD.len()] = std::array::from_fn(|column| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    });
    let others: usize = widths[..DETAIL].iter().map(|width| width + 2).sum();
    widths[DETAIL] = width.saturating_sub(others).max(LONGEST);
    let mut text = String::new();
    for row in &rows {
        write_row(&mut text, row, &widths);
    }
    text
}

fn row(facts: &Facts, now: Timestamp) -> Row {
    let cell = |text: &Option<String>, longest: usize| match text {
        Some(text) => escape::cut(&escape::line(text), longest).into_owned(),
        None => "-".to_owned(),
    };
    [
        facts.digest.to_string(),
        age::show(age_of(facts, now)),
        cell(&facts.reason, LONGEST),
        facts.size.to_string(),
        cell(&facts.account, LONGEST),
        cell(&facts.id, LONGEST_ID),
        cell(&facts.detail, usize::MAX),
    ]
}

fn write_row(text: &mut String, row: &Row, widths: &[usize; HEAD.len()]) {
    for (column, (cell, &width)) in row.iter().zip(widths).enumerate() {
        let written = match column {
            BYTES => write!(text, "{cell:>width$}  "),
            DETAIL => writeln!(text, "{}", escape::cut(cell, width)),
            _ => write!(text, "{cell:<width$}  "),
        };
        written.expect("writing to a text does not fail");
    }
}
