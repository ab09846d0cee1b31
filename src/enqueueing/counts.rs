//! What became of the rows. Every row that was read is in exactly one of the figures.

use serde::{Deserialize, Serialize};

/// How many rows met which end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Confirmed by the broker in this run; in a dry run, good.
    pub queued: u64,
    /// Confirmed by the broker in an earlier run.
    pub already_queued: u64,
    /// Left out, because an earlier row has the same recipient.
    pub duplicates: u64,
    /// No jobs.
    pub rejected: u64,
    /// Good, but not known to be stored when the run stopped.
    pub not_queued: u64,
}

impl Counts {
    /// The rows that were read.
    #[must_use]
    pub const fn rows(&self) -> u64 {
        self.good() + self.duplicates + self.rejected
    }

    /// The same, as a later run will find it: without any difference between this one and those
    /// before it.
    #[must_use]
    pub const fn of_all_runs(self) -> Self {
        Self {
            queued: self.queued + self.already_queued,
            already_queued: 0,
            ..self
        }
    }

    /// The rows that are jobs.
    #[must_use]
    pub const fn good(&self) -> u64 {
        self.queued + self.already_queued + self.not_queued
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.queued += other.queued;
        self.already_queued += other.already_queued;
        self.duplicates += other.duplicates;
        self.rejected += other.rejected;
        self.not_queued += other.not_queued;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_add_up_to_the_rows() {
        let one = Counts {
            queued: 1,
            already_queued: 2,
            duplicates: 4,
            rejected: 8,
            not_queued: 16,
        };
        let mut sum = one;
        sum += one;
        assert_eq!((one.rows(), sum.rows()), (31, 62));
        assert_eq!(sum.good(), 38);
    }
}
