//! The counter's windows, pieced together from what the meter answered.

use std::time::Duration;

use tokio::time::Instant;

use crate::domain::{Counter, Lane};

/// How long a window lasts.
const WINDOW: Duration = Duration::from_secs(1);

/// How far the ends of windows, as they are seen from here, may be off.
const SLACK: Duration = Duration::from_millis(250);

/// One window of the counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    ends: Instant,
    /// Jobs admitted in it, by [`Lane::index`].
    pub admitted: [u32; 2],
    /// The highest count that the meter reported in it.
    pub counted: u32,
}

impl Window {
    /// Jobs admitted in it, of both lanes.
    #[must_use]
    pub fn total(&self) -> u32 {
        self.admitted.iter().sum()
    }
}

/// All windows so far. Answers may be noted in another order than they were given.
#[derive(Debug, Clone, Default)]
pub struct Windows(Vec<Window>);

impl Windows {
    /// Notes one answer, received at `now`, with the jobs that it admitted; tells how that window
    /// stands after it. No answer: nothing is counted at the moment.
    pub fn note(&mut self, counter: Counter, admitted: [u32; 2], now: Instant) -> Option<Window> {
        if counter.window_left.is_zero() && admitted == [0, 0] {
            return None;
        }
        let window = self.ending_at(now + counter.window_left);
        window.counted = window.counted.max(counter.count);
        for (mine, more) in window.admitted.iter_mut().zip(admitted) {
            *mine += more;
        }
        Some(*window)
    }

    /// Two ends less than half a window apart are the same window's; the earlier one is truer,
    /// because an answer only ever comes late.
    fn ending_at(&mut self, ends: Instant) -> &mut Window {
        let apart = |known: Instant| ends.max(known) - ends.min(known);
        let known = self
            .0
            .iter()
            .rposition(|window| apart(window.ends) < WINDOW / 2);
        let place = known.unwrap_or_else(|| {
            self.0.push(Window {
                ends,
                admitted: [0; 2],
                counted: 0,
            });
            self.0.len() - 1
        });
        let window = &mut self.0[place];
        window.ends = window.ends.min(ends);
        window
    }

    /// The window that lasts at least half its time from `now` on, if there is one.
    #[must_use]
    pub fn just_opened(&self, now: Instant) -> Option<Window> {
        let lasts = |window: &&Window| window.ends > now + WINDOW / 2;
        self.0.iter().rev().find(lasts).copied()
    }

    /// How many there were.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The most that one window admitted of both lanes.
    #[must_use]
    pub fn most(&self) -> u32 {
        self.0.iter().map(Window::total).max().unwrap_or(0)
    }

    /// The most that one window admitted of a lane.
    #[must_use]
    pub fn most_of(&self, lane: Lane) -> u32 {
        let of_lane = self.0.iter().map(|window| window.admitted[lane.index()]);
        of_lane.max().unwrap_or(0)
    }

    /// Windows whose counter was not what was admitted in them.
    #[must_use]
    pub fn miscounted(&self) -> usize {
        let wrong = |window: &&Window| window.counted != window.total();
        self.0.iter().filter(wrong).count()
    }

    /// Whether there were more windows than there is time for: a counter that starts anew too soon
    /// keeps its ceilings and grants too much all the same.
    #[must_use]
    pub fn too_many(&self) -> bool {
        let ends = self.0.iter().map(|window| window.ends);
        let (Some(first), Some(last)) = (ends.clone().min(), ends.max()) else {
            return false;
        };
        let after_first = u32::try_from(self.0.len() - 1).unwrap_or(u32::MAX);
        last - first + SLACK < WINDOW * after_first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter(count: u32, left_ms: u64) -> Counter {
        Counter {
            count,
            window_left: Duration::from_millis(left_ms),
        }
    }

    #[test]
    fn answers_of_one_window_add_up_in_any_order() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut windows = Windows::default();
        windows.note(counter(80, 990), [0, 80], at(10));
        windows.note(counter(95, 200), [3, 0], at(800));
        windows.note(counter(92, 205), [12, 0], at(801));
        windows.note(counter(40, 950), [0, 40], at(1_060));
        assert_eq!((windows.count(), windows.most()), (2, 95));
        assert_eq!(windows.most_of(Lane::Marketing), 80);
        assert_eq!((windows.miscounted(), windows.too_many()), (0, false));
    }

    #[test]
    fn a_counter_above_what_was_admitted_is_miscounted() {
        let mut windows = Windows::default();
        windows.note(counter(250, 900), [0, 80], Instant::now());
        assert_eq!(windows.miscounted(), 1);
    }

    #[test]
    fn windows_that_begin_too_soon_are_too_many() {
        let start = Instant::now();
        let mut windows = Windows::default();
        for half in 0..3 {
            let now = start + Duration::from_millis(600) * half;
            windows.note(counter(1, 1_000), [1, 0], now);
        }
        assert!(windows.too_many());
    }

    #[test]
    fn an_answer_outside_any_window_is_none() {
        assert!(
            Windows::default()
                .note(counter(0, 0), [0, 0], Instant::now())
                .is_none()
        );
    }
}
