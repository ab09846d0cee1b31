//! Where a play is shown: a table for people, or JSON lines for scripts.

use std::io::{self, IsTerminal as _, Write as _};

use super::file::Facts;
use super::json;
use super::play::Ending;
use super::rules::Rule;
use super::table::{LaneNames, Style, Table};
use super::tally::Second;

/// The screen.
#[derive(Debug)]
pub enum Screen {
    /// For people.
    Table(Table),
    /// For scripts.
    Json,
}

impl Screen {
    /// A table that calls the lanes by these names, with a full bar at so many messages a second.
    #[must_use]
    pub fn table(names: LaneNames, budget: u32) -> Self {
        Self::Table(Table {
            style: style(),
            names,
            budget,
        })
    }

    /// What is about to be shown.
    ///
    /// # Errors
    /// When it cannot be written, as with the methods below.
    pub fn open(&self, opening: &str) -> io::Result<()> {
        match self {
            Self::Table(table) => print(&format!(
                "{opening}\n\n{}\n\n{}",
                table.legend(),
                table.head()
            )),
            Self::Json => Ok(()),
        }
    }

    /// One second.
    pub fn second(&self, second: &Second) -> io::Result<()> {
        print(&match self {
            Self::Table(table) => table.row(second),
            Self::Json => json::second(second),
        })
    }

    /// What was shown. `file` is what is known of a file, for scripts.
    pub fn close(
        &self,
        closing: &str,
        ending: &Ending,
        rules: &[Rule],
        file: Option<&Facts>,
    ) -> io::Result<()> {
        match self {
            Self::Table(table) => {
                let rules: Vec<_> = rules.iter().map(|rule| table.rule(rule)).collect();
                print(&format!("\n{closing}\n\n{}", rules.join("\n")))
            }
            Self::Json => print(&json::summary(ending, rules, file)),
        }
    }
}

/// Colours and bars are for terminals; `NO_COLOR`, when not empty, turns colours off.
fn style() -> Style {
    let terminal = io::stdout().is_terminal();
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    Style {
        bar: terminal,
        colour: terminal && !is_dumb && !unwanted,
    }
}

fn print(lines: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{lines}")?;
    out.flush()
}
