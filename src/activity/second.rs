//! What one account did within one second.

use std::fmt::Write as _;
use std::time::Duration;

use super::latencies::Latencies;
use crate::domain::{Lane, Limit, Outcome};

/// What is counted of an account's lane. A closed list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Jobs that a carrier took.
    Dispatched,
    /// Jobs sent back by a limit.
    Shed(Limit),
    /// Jobs refused for good.
    Refused,
    /// Jobs that no carrier would take.
    Failed,
    /// Jobs that became worthless before they were sent.
    Expired,
    /// Jobs that somebody cancelled.
    Cancelled,
    /// Jobs that went to wait in the database.
    Deferred,
}

impl Count {
    /// What counts of a job's end. That it was dispatched is counted when the carrier takes it.
    #[must_use]
    pub const fn of_end(outcome: Outcome) -> Option<Self> {
        match outcome {
            Outcome::Refused(_) => Some(Self::Refused),
            Outcome::Failed(_) => Some(Self::Failed),
            Outcome::Expired => Some(Self::Expired),
            Outcome::Cancelled => Some(Self::Cancelled),
            Outcome::Dispatched | Outcome::Dead => None,
        }
    }

    const fn slot(self) -> usize {
        match self {
            Self::Dispatched => 0,
            Self::Shed(limit) => 1 + limit as usize,
            Self::Refused => 5,
            Self::Failed => 6,
            Self::Expired => 7,
            Self::Cancelled => 8,
            Self::Deferred => 9,
        }
    }
}

const IN_WORKERS: usize = 10;
const OLDEST_MS: usize = 11;
const LATENCY: usize = 12;
const SLOTS: usize = LATENCY + Latencies::BUCKETS;

/// Of what form a second is written down. Seconds of another form are not read: they are forgotten
/// soon enough.
const FORM: &str = "1";

/// What happened in one lane of an account within one second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneSecond([u32; SLOTS]);

impl Default for LaneSecond {
    fn default() -> Self {
        Self([0; SLOTS])
    }
}

impl LaneSecond {
    /// So much more of something.
    pub fn add(&mut self, what: Count, count: u32) {
        let slot = &mut self.0[what.slot()];
        *slot = slot.saturating_add(count);
    }

    /// How much of something.
    #[must_use]
    pub const fn get(&self, what: Count) -> u32 {
        self.0[what.slot()]
    }

    /// Jobs that any limit sent back.
    #[must_use]
    pub fn shed(&self) -> u32 {
        let limits = Limit::ALL.map(|limit| self.get(Count::Shed(limit)));
        limits.into_iter().fold(0, u32::saturating_add)
    }

    /// A carrier has taken a job so long after it was queued.
    pub fn dispatched(&mut self, since_queued: Duration) {
        self.add(Count::Dispatched, 1);
        let slot = &mut self.0[LATENCY + Latencies::bucket(since_queued)];
        *slot = slot.saturating_add(1);
    }

    /// How long jobs took from being queued until a carrier had taken them.
    #[must_use]
    pub fn latencies(&self) -> Latencies {
        let mut counts = [0; Latencies::BUCKETS];
        counts.copy_from_slice(&self.0[LATENCY..]);
        Latencies::of(counts)
    }

    /// So many jobs are in the hands of workers and not sent yet, the oldest queued so long ago.
    pub fn hold(&mut self, jobs: u32, oldest: Duration) {
        self.0[IN_WORKERS] = jobs;
        self.0[OLDEST_MS] = u32::try_from(oldest.as_millis()).unwrap_or(u32::MAX);
    }

    /// Jobs in the hands of workers at the end of the second.
    #[must_use]
    pub const fn in_workers(&self) -> u32 {
        self.0[IN_WORKERS]
    }

    /// The age of the oldest of them.
    #[must_use]
    pub fn oldest(&self) -> Option<Duration> {
        let held = self.in_workers() > 0;
        held.then(|| Duration::from_millis(self.0[OLDEST_MS].into()))
    }

    /// Adds what another process, or another second, has counted. Of the oldest jobs the older one
    /// remains.
    pub fn merge(&mut self, other: &Self) {
        for (slot, (mine, theirs)) in self.0.iter_mut().zip(other.0).enumerate() {
            *mine = match slot {
                OLDEST_MS => theirs.max(*mine),
                _ => mine.saturating_add(theirs),
            };
        }
    }
}

/// What an account did within one second, by lane in drain order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Second([LaneSecond; 2]);

impl Second {
    /// One lane of it.
    #[must_use]
    pub const fn lane(&self, lane: Lane) -> &LaneSecond {
        &self.0[lane.index()]
    }

    /// One lane of it, to be added to.
    pub const fn lane_mut(&mut self, lane: Lane) -> &mut LaneSecond {
        &mut self.0[lane.index()]
    }

    /// Adds what another process, or another second, has counted.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            mine.merge(theirs);
        }
    }

    /// The second as a short text: its form, and every count that is not 0 with its place.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = FORM.to_owned();
        let counts = self.0.iter().flat_map(|lane| lane.0);
        for (place, count) in counts.enumerate().filter(|(_, count)| *count > 0) {
            write!(text, " {place}:{count}").expect("writing to a text does not fail");
        }
        text
    }

    /// Reads such a text; `None` when it has another form.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        if words.next() != Some(FORM) {
            return None;
        }
        let mut second = Self::default();
        for word in words {
            let (place, count) = word.split_once(':')?;
            let place: usize = place.parse().ok()?;
            let lane = second.0.get_mut(place / SLOTS)?;
            lane.0[place % SLOTS] = count.parse().ok()?;
        }
        Some(second)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_second_is_read_as_it_was_written(counts in proptest::collection::vec(any::<u32>(), SLOTS * 2)) {
            let mut second = Second::default();
            for (place, count) in counts.into_iter().enumerate() {
                second.0[place / SLOTS].0[place % SLOTS] = count;
            }
            prop_assert_eq!(Second::from_text(&second.to_text()), Some(second));
        }

        #[test]
        fn any_text_is_read_or_left(text in ".*") {
            let _ = Second::from_text(&text);
        }
    }

    #[test]
    fn every_count_has_a_slot_of_its_own() {
        let others = [
            Count::Dispatched,
            Count::Refused,
            Count::Failed,
            Count::Expired,
        ];
        let counts = Limit::ALL.map(Count::Shed).into_iter().chain(others);
        let counts = counts.chain([Count::Cancelled, Count::Deferred]);
        let mut slots: Vec<_> = counts.map(Count::slot).collect();
        slots.sort_unstable();
        assert_eq!(slots, (0..IN_WORKERS).collect::<Vec<_>>());
    }

    #[test]
    fn seconds_add_up_and_the_older_job_remains() {
        let mut one = LaneSecond::default();
        one.dispatched(Duration::from_millis(4));
        one.hold(2, Duration::from_secs(3));
        let mut other = LaneSecond::default();
        other.add(Count::Shed(Limit::Number), 5);
        other.dispatched(Duration::from_millis(40));
        other.hold(1, Duration::from_secs(9));
        one.merge(&other);
        assert_eq!(one.get(Count::Dispatched), 2);
        assert_eq!((one.shed(), one.in_workers()), (5, 3));
        assert_eq!(one.oldest(), Some(Duration::from_secs(9)));
        assert_eq!(one.latencies().samples(), 2);
    }

    #[test]
    fn another_form_is_left() {
        for text in ["", "2 0:1", "1 0", "1 0:x", "1 999:1"] {
            assert_eq!(Second::from_text(text), None, "{text}");
        }
    }
}
