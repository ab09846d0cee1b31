//! The play for people: a row per second.

use super::rules::Rule;
use super::tally::Second;
use super::words::{grouped, millis, wrapped};
use crate::domain::Lane;

/// Characters of the bar that shows how full the budget was.
const BAR: usize = 10;

/// How lanes are called in the table's head, in five characters at most.
#[derive(Debug, Clone, Copy)]
pub struct LaneNames {
    /// Marketing jobs.
    pub marketing: &'static str,
    /// Transactional jobs.
    pub transactional: &'static str,
}

/// How the table looks.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// The reader is a person at a terminal: a bar is drawn.
    pub bar: bool,
    /// Colours are wanted.
    pub colour: bool,
}

/// The table.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// How it looks.
    pub style: Style,
    /// What it calls the lanes.
    pub names: LaneNames,
    /// A full bar, in messages per second.
    pub budget: u32,
}

/// Terminal codes.
const GREEN: &str = "32";
const RED: &str = "1;31";
const CYAN: &str = "36";
const BOLD: &str = "1";
const FAINT: &str = "2";

impl Table {
    /// What the columns mean, and their heads.
    #[must_use]
    pub fn head(&self) -> String {
        let LaneNames {
            marketing,
            transactional,
        } = self.names;
        let bar = if self.style.bar {
            " ".repeat(BAR + 1)
        } else {
            String::new()
        };
        let first = format!(
            "{:>3}{:>13}{:>13}{:>7}{:>13}{:>8}{bar}{:>9}",
            "", "offered", "dispatched", "", "waiting", "", "ms"
        );
        let second = format!(
            "{:>3}{marketing:>7}{transactional:>6}{marketing:>7}{transactional:>6}{:>7}{marketing:>7}{transactional:>6}{:>8}{bar}{:>5}{:>6}",
            "sec", "shed", "counter", "p50", "max"
        );
        [first, second]
            .map(|line| self.painted(BOLD, &line))
            .join("\n")
    }

    /// The legend's lines.
    #[must_use]
    pub fn legend(&self) -> String {
        let LaneNames {
            marketing,
            transactional,
        } = self.names;
        let bar = if self.style.bar {
            format!(": ▒ {marketing} █ {transactional}")
        } else {
            String::new()
        };
        let lines = [
            "  shed     sent back, because the ceiling was reached, to try again in a second"
                .to_owned(),
            "  waiting  offered and not dispatched at the end of the second".to_owned(),
            format!(
                "  counter  the fullest one-second window counted, of {}{bar}",
                grouped(self.budget.into())
            ),
            format!(
                "  ms       from publishing ({transactional} only) to the carrier's yes: median, slowest"
            ),
        ];
        lines.map(|line| self.painted(FAINT, &line)).join("\n")
    }

    /// One second's row.
    #[must_use]
    pub fn row(&self, second: &Second) -> String {
        let (t, m) = (Lane::Transactional.index(), Lane::Marketing.index());
        let Second {
            number,
            offered,
            dispatched,
            shed,
            waiting,
            window,
            latency,
        } = second;
        let counted = window.map_or(0, |window| window.counted);
        let latency = match latency {
            Some(of) => format!("{:>5}{:>6}", millis(of.median), millis(of.max)),
            None => format!("{:>5}{:>6}", "-", "-"),
        };
        format!(
            "{number:>3}{:>7}{:>6}{:>7}{:>6}{:>7}{:>7}{:>6}{counted:>8}{}{latency}",
            offered[m],
            offered[t],
            dispatched[m],
            dispatched[t],
            shed[t] + shed[m],
            waiting[m],
            waiting[t],
            self.bar(second),
        )
    }

    /// How full the fullest window was.
    fn bar(&self, second: &Second) -> String {
        if !self.style.bar {
            return String::new();
        }
        let admitted = second.window.map_or([0; 2], |window| window.admitted);
        let budget = self.budget.max(1) as usize;
        let length = |count: u32| ((count as usize * BAR + budget / 2) / budget).min(BAR);
        let marketing = length(admitted[Lane::Marketing.index()]);
        let full = length(admitted.iter().sum());
        format!(
            " {}{}{}",
            self.painted(CYAN, &"▒".repeat(marketing)),
            self.painted(GREEN, &"█".repeat(full - marketing)),
            self.painted(FAINT, &"·".repeat(BAR - full))
        )
    }

    /// One rule's line.
    #[must_use]
    pub fn rule(&self, rule: &Rule) -> String {
        let (mark, colour) = match rule.held {
            Some(true) => ("ok", GREEN),
            Some(false) => ("FAIL", RED),
            None => ("-", FAINT),
        };
        let mark = self.painted(colour, &format!("{mark:<4}"));
        format!("{mark}  {:<15}  {}", rule.name, wrapped(&rule.detail, 23))
    }

    fn painted(&self, code: &str, text: &str) -> String {
        if self.style.colour && !text.is_empty() {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::windows::Windows;
    use super::*;
    use crate::domain::Counter;
    use std::time::Duration;
    use tokio::time::Instant;

    fn table(bar: bool, colour: bool) -> Table {
        Table {
            style: Style { bar, colour },
            names: LaneNames {
                marketing: "camp.",
                transactional: "pass.",
            },
            budget: 100,
        }
    }

    fn second() -> Second {
        let counter = Counter {
            count: 91,
            window_left: Duration::from_millis(500),
        };
        let window = Windows::default().note(counter, [15, 76], Instant::now());
        Second {
            number: 60,
            offered: [1_000, 200_000],
            dispatched: [15, 76],
            shed: [0, 16_000],
            waiting: [60_000, 300_000],
            window,
            latency: None,
        }
    }

    #[test]
    fn the_widest_row_is_as_wide_as_its_head_and_fits() {
        for bar in [false, true] {
            let table = table(bar, false);
            let widths: Vec<_> = table
                .head()
                .lines()
                .skip(1)
                .chain([&*table.row(&second())])
                .map(|line| line.chars().count())
                .collect();
            assert_eq!(widths[0], widths[1]);
            assert!(widths[0] <= 80, "{widths:?}");
            let legend = table.legend();
            assert!(legend.lines().all(|line| line.chars().count() <= 80));
        }
    }

    #[test]
    fn the_bar_shows_both_lanes_shares() {
        assert!(table(true, false).row(&second()).contains(" ▒▒▒▒▒▒▒▒█· "));
        assert!(table(true, true).row(&second()).contains("\u{1b}[36m▒"));
        assert!(!table(true, false).row(&second()).contains('\u{1b}'));
    }
}
