//! What the commands on the database's tables have in common.

pub(super) mod grid;
pub(super) mod import;
mod import_report;
pub(super) mod output;
pub(super) mod problem;
pub(super) mod session;
pub(super) mod values;

/// The exit codes of these commands.
pub(super) const CODES: &str = "\
Exit codes:
  0  done
  1  the database could not be reached or failed; nothing was changed
  2  wrong usage, settings or values; nothing was changed
  3  what was asked about is not there";

/// The exit codes of imports.
pub(super) const IMPORT_CODES: &str = "\
Exit codes:
  0    every row is written, or was there already
  1    the database could not be reached or failed; nothing was written
  2    wrong usage or settings, or a file with rows that cannot be used;
       nothing was written
  3    written, but for rows that --skip-bad has left out
  130  stopped by Ctrl-C (SIGINT), 143 by SIGTERM; nothing was written";
