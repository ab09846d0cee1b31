//! When a job that its carrier did not take is tried again, and where it waits until then.

use std::time::Duration;

/// How often and how soon a job is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Tries in all, the first one included.
    pub max_attempts: u32,
    /// The wait after the first try; it doubles with each further one.
    pub base: Duration,
    /// The longest wait that a job spends in this worker; a longer one is spent in a queue.
    pub longest_here: Duration,
}

/// What to do with a job that its carrier did not take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Wait so long in this worker, outside the carrier's slots.
    Here(Duration),
    /// Wait in the parking queue.
    Park,
    /// Give it up.
    Exhausted,
}

impl RetryPolicy {
    /// What follows after `attempts` tries, when the carrier asked to be left alone for
    /// `retry_after`. `spread` in 0..1 sets jobs that failed together apart.
    #[must_use]
    pub fn after(&self, attempts: u32, retry_after: Option<Duration>, spread: f64) -> Retry {
        if attempts >= self.max_attempts {
            return Retry::Exhausted;
        }
        let doublings = attempts.saturating_sub(1).min(16);
        let backoff = self
            .base
            .saturating_mul(1 << doublings)
            .mul_f64(0.75 + spread / 2.0);
        let delay = backoff.max(retry_after.unwrap_or_default());
        if delay <= self.longest_here {
            Retry::Here(delay)
        } else {
            Retry::Park
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const POLICY: RetryPolicy = RetryPolicy {
        max_attempts: 5,
        base: Duration::from_millis(200),
        longest_here: Duration::from_secs(2),
    };

    #[test]
    fn waits_double_then_park_then_end() {
        let after = |attempts| POLICY.after(attempts, None, 0.5);
        assert_eq!(after(1), Retry::Here(Duration::from_millis(200)));
        assert_eq!(after(2), Retry::Here(Duration::from_millis(400)));
        assert_eq!(after(4), Retry::Here(Duration::from_millis(1600)));
        assert_eq!(after(5), Retry::Exhausted);
        let patient = RetryPolicy {
            max_attempts: 9,
            ..POLICY
        };
        assert_eq!(patient.after(6, None, 0.5), Retry::Park);
    }

    #[test]
    fn the_carriers_wish_counts_when_it_is_longer() {
        let wish = Duration::from_secs(1);
        assert_eq!(POLICY.after(1, Some(wish), 0.0), Retry::Here(wish));
        assert_eq!(
            POLICY.after(1, Some(Duration::from_secs(30)), 0.0),
            Retry::Park
        );
        assert_eq!(
            POLICY.after(1, Some(Duration::ZERO), 0.5),
            Retry::Here(Duration::from_millis(200))
        );
    }

    proptest! {
        #[test]
        fn never_longer_here_than_allowed_and_never_more_tries(attempts in any::<u32>(), spread in 0.0..1.0f64, wish in prop::option::of(0..u64::MAX)) {
            match POLICY.after(attempts, wish.map(Duration::from_millis), spread) {
                Retry::Here(delay) => prop_assert!(delay <= POLICY.longest_here && attempts < 5),
                Retry::Park => prop_assert!(attempts < 5),
                Retry::Exhausted => prop_assert!(attempts >= 5),
            }
        }
    }
}
