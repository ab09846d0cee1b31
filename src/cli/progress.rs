//! What is shown while rows are queued, on standard error: a bar on a terminal, otherwise a line now
//! and then.

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::time::Instant;

/// How often a line is written where there is no terminal.
const EVERY: Duration = Duration::from_secs(10);
/// How often the bar is drawn again while nothing happens.
const TICK: Duration = Duration::from_millis(250);

/// What the bar takes is what 80 columns leave, also with millions of rows.
const TEMPLATE: &str = "{prefix} {wide_bar} {percent:>3} %  {msg}  {eta} left";

/// How progress is shown.
pub(super) struct Progress {
    shown: Shown,
    what: &'static str,
    bytes: u64,
    started: Instant,
}

enum Shown {
    Bar(ProgressBar),
    Lines { next: Instant },
    Nothing,
}

impl Progress {
    /// The progress through a file of so many bytes; `what` is being done, such as `queueing`.
    pub(super) fn new(what: &'static str, bytes: u64, is_wanted: bool) -> Self {
        let now = Instant::now();
        let shown = if !is_wanted {
            Shown::Nothing
        } else if io::stderr().is_terminal() {
            Shown::Bar(bar(what, bytes))
        } else {
            Shown::Lines { next: now + EVERY }
        };
        Self {
            shown,
            what,
            bytes,
            started: now,
        }
    }

    /// So many rows are done, which end at this byte.
    pub(super) fn advance(&mut self, rows: u64, end: u64) {
        let now = Instant::now();
        match &mut self.shown {
            Shown::Bar(bar) => {
                bar.set_position(end);
                let rate = HumanCount(per_second(rows, now - self.started));
                bar.set_message(format!("{} rows  {rate}/s", HumanCount(rows)));
            }
            Shown::Lines { next } if now >= *next => {
                *next = now + EVERY;
                self.say(self.line(rows, end, now - self.started));
            }
            Shown::Lines { .. } | Shown::Nothing => {}
        }
    }

    /// Writes a line to standard error, above the bar if there is one.
    pub(super) fn say(&self, line: impl Display) {
        // What cannot be shown is still counted.
        let write = || drop(writeln!(io::stderr(), "{line}"));
        match &self.shown {
            Shown::Bar(bar) => bar.suspend(write),
            Shown::Lines { .. } | Shown::Nothing => write(),
        }
    }

    fn line(&self, rows: u64, end: u64, elapsed: Duration) -> String {
        let percent = end * 100 / self.bytes.max(1);
        let left = elapsed.as_secs() * self.bytes.saturating_sub(end) / end.max(1);
        format!(
            "{} {} ({percent} % of the file), about {} left",
            self.what,
            rows_and_rate(rows, elapsed),
            HumanDuration(Duration::from_secs(left)),
        )
    }
}

/// Nothing of a bar stays on the terminal: what follows says it all.
impl Drop for Progress {
    fn drop(&mut self) {
        if let Shown::Bar(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }
}

fn bar(what: &'static str, bytes: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template(TEMPLATE);
    bar.set_style(style.expect("the template is well-formed"));
    bar.set_prefix(what);
    bar.enable_steady_tick(TICK);
    bar
}

fn rows_and_rate(rows: u64, elapsed: Duration) -> String {
    let rate = HumanCount(per_second(rows, elapsed));
    format!("{} rows, {rate} a second", HumanCount(rows))
}

/// Whole rows a second.
pub(super) fn per_second(rows: u64, elapsed: Duration) -> u64 {
    let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    rows.saturating_mul(1_000) / millis.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_far_how_fast_and_how_long_still() {
        let progress = Progress::new("queueing", 4_000, false);
        assert_eq!(
            progress.line(12_000, 1_000, Duration::from_secs(10)),
            "queueing 12,000 rows, 1,200 a second (25 % of the file), about 30 seconds left"
        );
    }

    #[test]
    fn a_beginning_has_a_rate_too() {
        assert_eq!(per_second(0, Duration::ZERO), 0);
        assert_eq!(per_second(5, Duration::from_secs(2)), 2);
    }
}
