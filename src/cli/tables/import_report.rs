//! What an import came to.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use indicatif::HumanCount;
use serde::Serialize;

use super::import::ImportArgs;
use super::output::{print, print_json};
use super::problem::Problem;
use crate::accounts::tables::accounts::Changed;
use crate::batch::RowError;
use crate::cli::escape;
use crate::cli::progress::per_second;

/// What became of a file's rows.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    file: String,
    pub(super) rows: u64,
    /// Rows that were not in the table before.
    pub(super) added: u64,
    /// Rows that replaced others.
    changed: u64,
    /// Rows that were there already.
    unchanged: u64,
    /// Rows that cannot be used.
    pub(super) rejected: u64,
    /// The first of them.
    pub(super) rejected_rows: Vec<RowError>,
    /// Whether anything was written.
    written: bool,
    #[serde(skip)]
    pub(super) took: Duration,
}

impl Report {
    pub(super) fn of(file: &Path) -> Self {
        Self {
            file: file.display().to_string(),
            rows: 0,
            added: 0,
            changed: 0,
            unchanged: 0,
            rejected: 0,
            rejected_rows: Vec::new(),
            written: false,
            took: Duration::ZERO,
        }
    }

    /// Whether the good rows are to be written.
    pub(super) fn is_writable(&self, args: &ImportArgs) -> bool {
        !args.dry_run && (self.rejected == 0 || args.skip_bad)
    }

    pub(super) fn add(&mut self, changed: Changed) {
        self.written = true;
        self.added += changed.created;
        self.changed += changed.changed;
        self.unchanged += changed.unchanged;
    }

    /// Prints it, and gives the exit code.
    pub(super) fn show(&self, args: &ImportArgs) -> Result<u8, Problem> {
        if args.json {
            print_json([self])?;
        } else {
            print(&format!("{}\n", escape::block(&self.to_string())))?;
            self.advise(args);
        }
        Ok(match self.rejected {
            0 => 0,
            _ if args.skip_bad && !args.dry_run => 3,
            _ => 2,
        })
    }

    fn advise(&self, args: &ImportArgs) {
        if self.rejected > 0 && !args.skip_bad {
            eprintln!(
                "next: correct those rows and run it again, or give --skip-bad to leave them out"
            );
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, rows, .. } = self;
        let rate = HumanCount(per_second(*rows, self.took));
        let outcome = if self.written {
            "imported"
        } else {
            "nothing was written"
        };
        write!(f, "{file}: {outcome}")?;
        let figures = [
            ("rows", *rows, format!("{rate} a second")),
            ("added", self.added, String::new()),
            ("changed", self.changed, String::new()),
            ("there already", self.unchanged, String::new()),
            ("rejected", self.rejected, self.listing()),
        ];
        let width = HumanCount(*rows).to_string().len();
        let told = figures
            .iter()
            .filter(|(what, count, _)| *count > 0 || *what == "rows");
        for (what, count, remark) in told {
            let count = HumanCount(*count).to_string();
            let line = format!("  {what:<14}  {count:>width$}  {remark}");
            write!(f, "\n{}", line.trim_end())?;
        }
        Ok(())
    }
}

impl Report {
    fn listing(&self) -> String {
        let shown = self.rejected_rows.len() as u64;
        if shown == self.rejected {
            return String::new();
        }
        format!("the first {shown} are shown; --max-errors shows more")
    }
}
