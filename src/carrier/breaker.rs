//! When a carrier counts as being out. Pure: the present instant is passed in.

use std::time::Duration;

use tokio::time::Instant;

/// When a breaker opens and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerOptions {
    /// Failures in a row that open it; zero never does.
    pub failures: u32,
    /// How long it stays open at first; each failed trial doubles that.
    pub open_for: Duration,
    /// The longest that it stays open.
    pub open_at_most: Duration,
}

/// Whether a carrier may be tried now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowed {
    /// It works.
    Yes,
    /// It was out: this one try shows whether it still is.
    Trial,
    /// It is out.
    No {
        /// When the next trial may be made.
        until: Instant,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Closed,
    Open { until: Instant, for_: Duration },
    Trying { since: Instant, after: Duration },
}

/// A carrier's circuit breaker.
#[derive(Debug)]
pub struct Breaker {
    options: BreakerOptions,
    state: State,
    failures: u32,
}

impl Breaker {
    /// A closed breaker.
    #[must_use]
    pub fn new(options: BreakerOptions) -> Self {
        Self {
            options,
            state: State::Closed,
            failures: 0,
        }
    }

    /// Whether a try may be made now. [`Allowed::Trial`] is given once; the next answer follows
    /// from its result.
    pub fn allows(&mut self, now: Instant) -> Allowed {
        match self.state {
            State::Closed => Allowed::Yes,
            State::Open { until, for_ } if until <= now => {
                self.state = State::Trying {
                    since: now,
                    after: for_,
                };
                Allowed::Trial
            }
            State::Open { until, .. } => Allowed::No { until },
            State::Trying { since, after } => Allowed::No {
                until: since + after,
            },
        }
    }

    /// How a try ended; true when the carrier gave an answer that shows it at work.
    pub fn record(&mut self, now: Instant, healthy: bool) {
        if healthy {
            self.failures = 0;
            self.state = State::Closed;
            return;
        }
        self.failures = self.failures.saturating_add(1);
        match self.state {
            State::Trying { after, .. } => {
                let for_ = (after * 2).min(self.options.open_at_most);
                self.state = State::Open {
                    until: now + for_,
                    for_,
                };
            }
            State::Closed
                if self.options.failures > 0 && self.failures >= self.options.failures =>
            {
                let for_ = self.options.open_for;
                self.state = State::Open {
                    until: now + for_,
                    for_,
                };
            }
            State::Closed | State::Open { .. } => {}
        }
    }

    /// An allowed try was not made after all: if it was the trial, the next one may be made at once.
    pub fn withdraw(&mut self) {
        if let State::Trying { since, after } = self.state {
            self.state = State::Open {
                until: since,
                for_: after,
            };
        }
    }

    /// Whether the carrier counts as being out.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.state != State::Closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: BreakerOptions = BreakerOptions {
        failures: 3,
        open_for: Duration::from_secs(1),
        open_at_most: Duration::from_secs(3),
    };

    fn opened(now: Instant) -> Breaker {
        let mut breaker = Breaker::new(OPTIONS);
        for _ in 0..3 {
            assert_eq!(breaker.allows(now), Allowed::Yes);
            breaker.record(now, false);
        }
        breaker
    }

    #[test]
    fn failures_in_a_row_open_it_and_an_answer_between_them_does_not() {
        let now = Instant::now();
        let mut breaker = Breaker::new(OPTIONS);
        for healthy in [false, false, true, false, false] {
            breaker.record(now, healthy);
        }
        assert_eq!(breaker.allows(now), Allowed::Yes);
        breaker.record(now, false);
        assert_eq!(
            breaker.allows(now),
            Allowed::No {
                until: now + OPTIONS.open_for
            }
        );
    }

    #[test]
    fn one_trial_decides() {
        let now = Instant::now();
        let mut breaker = opened(now);
        let later = now + Duration::from_secs(1);
        assert_eq!(breaker.allows(later), Allowed::Trial);
        assert!(
            matches!(breaker.allows(later), Allowed::No { .. }),
            "only one"
        );
        breaker.record(later, true);
        assert_eq!(breaker.allows(later), Allowed::Yes);
    }

    #[test]
    fn failed_trials_double_the_wait_up_to_its_cap() {
        let mut now = Instant::now();
        let mut breaker = opened(now);
        for expected in [2, 3, 3] {
            let Allowed::No { until } = breaker.allows(now) else {
                panic!()
            };
            now = until;
            assert_eq!(breaker.allows(now), Allowed::Trial);
            breaker.record(now, false);
            assert_eq!(
                breaker.allows(now),
                Allowed::No {
                    until: now + Duration::from_secs(expected)
                }
            );
        }
    }

    #[test]
    fn a_trial_that_was_not_made_can_be_made_again() {
        let now = Instant::now();
        let mut breaker = opened(now);
        let later = now + Duration::from_secs(1);
        assert_eq!(breaker.allows(later), Allowed::Trial);
        breaker.withdraw();
        assert_eq!(breaker.allows(later), Allowed::Trial);
    }

    #[test]
    fn zero_failures_never_open_it() {
        let now = Instant::now();
        let mut breaker = Breaker::new(BreakerOptions {
            failures: 0,
            ..OPTIONS
        });
        (0..100).for_each(|_| breaker.record(now, false));
        assert_eq!(breaker.allows(now), Allowed::Yes);
    }
}
