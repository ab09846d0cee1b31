//! The last minute of an account, as it was read.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use tokio::time::Instant;

use super::held::Held;
use super::view::{LaneSecondView, SecondView};
use crate::activity::{Count, LaneSecond, Second};
use crate::domain::Lane;

/// How many seconds a minute has, and are shown.
pub(super) const MINUTE: u64 = 60;

/// How soon after its end a second is told by every process.
const TOLD_AFTER_MS: u64 = 200;

/// Seconds that are read again: a process may have been late.
const AGAIN: u64 = 3;

/// What is remembered of an account between two looks at it, so that each reads no more than what
/// may be new. A look that stands alone begins with an empty one.
#[derive(Debug, Default)]
pub struct History {
    seconds: BTreeMap<u64, Second>,
    /// The last second that was read.
    pub(super) last: Option<u64>,
    /// What the database said last, and when.
    pub(super) held: Option<(Instant, Held)>,
}

impl History {
    /// The seconds to be read at that time.
    pub(super) fn to_read(&self, now_ms: u64) -> RangeInclusive<u64> {
        let last = last_told(now_ms);
        let first = last.saturating_sub(MINUTE - 1);
        let read = self
            .last
            .map_or(first, |read| read.saturating_sub(AGAIN - 1));
        // A clock that was set back.
        let from = if read > last { first } else { read.max(first) };
        from..=last
    }

    /// Takes in what was read of these seconds.
    pub(super) fn take_in(&mut self, read: &RangeInclusive<u64>, seconds: BTreeMap<u64, Second>) {
        let (from, last) = (*read.start(), *read.end());
        self.seconds
            .retain(|at, _| *at < from && *at + MINUTE > last);
        self.seconds.extend(seconds);
        self.last = Some(last);
    }

    /// The minute in one.
    pub(super) fn sum(&self) -> Second {
        self.seconds
            .values()
            .fold(Second::default(), |mut sum, one| {
                sum.merge(one);
                sum
            })
    }

    /// The last second of it.
    pub(super) fn newest(&self) -> Second {
        let newest = self.last.and_then(|last| self.seconds.get(&last));
        newest.copied().unwrap_or_default()
    }

    /// The minute second by second, those without anything included; nothing before the first look.
    #[must_use]
    pub fn minute(&self) -> Vec<SecondView> {
        self.of_the_last(MINUTE)
    }

    /// Its last few seconds, of which some may be new or other than before.
    #[must_use]
    pub fn news(&self) -> Vec<SecondView> {
        self.of_the_last(AGAIN)
    }

    fn of_the_last(&self, seconds: u64) -> Vec<SecondView> {
        let Some(last) = self.last else {
            return Vec::new();
        };
        let nothing = Second::default();
        let view = |at| view(at, self.seconds.get(&at).unwrap_or(&nothing));
        (last.saturating_sub(seconds - 1)..=last)
            .map(view)
            .collect()
    }
}

/// The last second that every process has told of at that time.
pub(super) fn last_told(now_ms: u64) -> u64 {
    (now_ms.saturating_sub(TOLD_AFTER_MS) / 1_000).saturating_sub(1)
}

fn view(at: u64, second: &Second) -> SecondView {
    let lane = |lane| lane_view(second.lane(lane));
    SecondView {
        second: at,
        transactional: lane(Lane::Transactional),
        marketing: lane(Lane::Marketing),
    }
}

fn lane_view(lane: &LaneSecond) -> LaneSecondView {
    let latencies = lane.latencies();
    LaneSecondView {
        dispatched: lane.get(Count::Dispatched),
        shed: lane.shed(),
        refused: lane.get(Count::Refused),
        in_workers: lane.in_workers(),
        p50_ms: latencies.percentile(50),
        p99_ms: latencies.percentile(99),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(dispatched: u32) -> Second {
        let mut second = Second::default();
        let lane = second.lane_mut(Lane::Marketing);
        lane.add(Count::Dispatched, dispatched);
        second
    }

    fn dispatched(views: &[SecondView]) -> Vec<(u64, u32)> {
        let of = |view: &SecondView| (view.second, view.marketing.dispatched);
        views.iter().map(of).collect()
    }

    #[test]
    fn the_first_look_reads_a_minute_and_later_ones_what_may_be_new() {
        let mut history = History::default();
        let read = history.to_read(1_000_250);
        assert_eq!(read, 940..=999);
        history.take_in(&read, BTreeMap::new());
        assert_eq!(history.to_read(1_001_250), 997..=1_000);
        assert_eq!(history.to_read(1_001_150), 997..=999, "not told yet");
        assert_eq!(history.to_read(2_000_250), 1_940..=1_999);
        assert_eq!(history.to_read(900_250), 840..=899, "set back");
    }

    #[test]
    fn what_is_read_again_replaces_what_was_read_before() {
        let mut history = History::default();
        history.take_in(&(940..=999), [(998, second(1)), (999, second(2))].into());
        history.take_in(
            &(997..=1_000),
            [(999, second(5)), (1_000, second(6))].into(),
        );
        assert_eq!(
            dispatched(&history.news()),
            [(998, 0), (999, 5), (1_000, 6)]
        );
        assert_eq!(history.minute().len(), 60);
        let sum = *history.sum().lane(Lane::Marketing);
        assert_eq!(sum.get(Count::Dispatched), 11);
        assert_eq!(history.newest(), second(6));
    }

    #[test]
    fn what_is_older_than_a_minute_is_forgotten() {
        let mut history = History::default();
        history.take_in(&(940..=999), [(940, second(1))].into());
        history.take_in(&(998..=1_000), BTreeMap::new());
        assert_eq!(history.sum(), Second::default());
    }

    #[test]
    fn before_the_first_look_there_is_nothing() {
        assert!(History::default().minute().is_empty());
    }
}
