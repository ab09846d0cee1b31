//! How long things took, in buckets that can be added up over processes and seconds.

use std::time::Duration;

/// The upper bounds of all buckets but the last, in milliseconds.
const BOUNDS_MS: [u32; 23] = [
    1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500, 750, 1_000, 1_500, 2_500,
    5_000, 10_000, 60_000,
];

/// Counts of durations by length. What takes longer than a minute counts as a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Latencies([u32; Self::BUCKETS]);

impl Default for Latencies {
    fn default() -> Self {
        Self([0; Self::BUCKETS])
    }
}

impl Latencies {
    /// How many buckets there are.
    pub const BUCKETS: usize = BOUNDS_MS.len() + 1;

    /// Those that have these counts.
    #[must_use]
    pub const fn of(counts: [u32; Self::BUCKETS]) -> Self {
        Self(counts)
    }

    /// The counts of all buckets, the shortest first.
    #[must_use]
    pub const fn counts(&self) -> &[u32; Self::BUCKETS] {
        &self.0
    }

    /// The bucket of a duration.
    #[must_use]
    pub fn bucket(took: Duration) -> usize {
        let millis = took.as_micros().div_ceil(1_000);
        BOUNDS_MS.partition_point(|bound| u128::from(*bound) < millis)
    }

    /// Adds others.
    pub fn add(&mut self, others: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(others.0) {
            *mine = mine.saturating_add(theirs);
        }
    }

    /// How many durations were counted.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.0.iter().copied().map(u64::from).sum()
    }

    /// The duration, in milliseconds, that this percentage of all does not exceed; `None` when
    /// nothing was counted. Within a bucket durations count as evenly spread.
    #[must_use]
    pub fn percentile(&self, percent: u8) -> Option<f64> {
        let samples = self.samples();
        let rank = (samples * u64::from(percent)).div_ceil(100).max(1);
        let mut before = 0;
        for (place, count) in self.0.iter().copied().enumerate() {
            if before + u64::from(count) >= rank && count > 0 {
                let lower = place.checked_sub(1).map_or(0, |place| BOUNDS_MS[place]);
                let upper = BOUNDS_MS.get(place).copied().unwrap_or(lower);
                #[expect(
                    clippy::cast_precision_loss,
                    reason = "below a second's number of jobs"
                )]
                let part = (rank - before) as f64 / f64::from(count);
                return Some(f64::from(lower) + f64::from(upper - lower) * part);
            }
            before += u64::from(count);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(millis: &[u64]) -> Latencies {
        let mut counts = [0; Latencies::BUCKETS];
        for millis in millis {
            counts[Latencies::bucket(Duration::from_millis(*millis))] += 1;
        }
        Latencies::of(counts)
    }

    #[test]
    fn a_percentile_lies_within_the_bucket_of_the_duration_that_it_stands_for() {
        let quick = [vec![4; 99], vec![900]].concat();
        let many = of(&quick);
        let p50 = many.percentile(50).unwrap();
        assert!((3.0..=5.0).contains(&p50), "{p50}");
        assert!(many.percentile(99).unwrap() <= 5.0);
        let longest = many.percentile(100).unwrap();
        assert!((750.0..=1_000.0).contains(&longest), "{longest}");
    }

    #[test]
    fn nothing_has_no_percentile_and_one_has_itself() {
        assert_eq!(Latencies::default().percentile(99), None);
        assert_eq!(of(&[2]).percentile(1), Some(2.0));
        assert_eq!(of(&[3_600_000]).percentile(50), Some(60_000.0));
        assert_eq!(of(&[0]).samples(), 1);
    }

    #[test]
    fn a_bound_belongs_to_its_bucket_and_a_little_more_to_the_next() {
        let at = Latencies::bucket(Duration::from_millis(10));
        assert_eq!(Latencies::bucket(Duration::from_micros(10_001)), at + 1);
        assert_eq!(Latencies::bucket(Duration::from_micros(7_001)), at);
    }
}
