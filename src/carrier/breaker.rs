//! The circuit breaker: a carrier that keeps failing is left alone for a while.
//!
//! Pure: the present is passed in, and asking changes nothing. Who sends says so with
//! [`Breaker::started`], and how it went with [`Breaker::record`].

use std::time::Duration;

use tokio::time::Instant;

use crate::dispatch::ports::{Accepted, SendError, SendVerdict};
use crate::settings::BreakerSettings;

/// How long failures must have gone on without any success between them. A burst of one sender's
/// hopeless jobs does not say that the carrier is out: others' would have succeeded meanwhile.
pub const ROW_LASTS: Duration = Duration::from_secs(1);

/// How much longer than others a job that has failed before waits to be the trial: it says less.
const TRIED_WAIT: Duration = Duration::from_secs(1);

/// Whether the carrier may be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowed {
    /// As usual.
    Yes,
    /// With one job, to see whether it is back.
    Trial,
    /// Not before this instant.
    No {
        /// When to ask again.
        until: Instant,
    },
}

/// The breaker of one carrier.
#[derive(Debug, Clone)]
pub struct Breaker {
    settings: BreakerSettings,
    state: State,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// Called as usual; so many failures in a row, the first of them then.
    Closed {
        failures: u32,
        since: Option<Instant>,
    },
    /// Left alone; the `openings`-th time in a row. A trial that is under way moves `until` on, so
    /// that a trial that never ends is followed by another.
    Open {
        until: Instant,
        openings: u32,
        trial: bool,
    },
}

impl State {
    const CLOSED: Self = Self::Closed {
        failures: 0,
        since: None,
    };
}

impl Breaker {
    /// A closed breaker.
    #[must_use]
    pub fn new(settings: BreakerSettings) -> Self {
        Self {
            settings,
            state: State::CLOSED,
        }
    }

    /// Whether the carrier counts as being out.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Open { .. })
    }

    /// Whether a job that has failed before may be the trial.
    #[must_use]
    pub fn any_job_may_try(&self, now: Instant) -> bool {
        match self.state {
            State::Closed { .. } => true,
            State::Open { until, .. } => now >= until + TRIED_WAIT,
        }
    }

    /// Whether the carrier may be called now.
    #[must_use]
    pub fn allows(&self, now: Instant) -> Allowed {
        match self.state {
            State::Closed { .. } => Allowed::Yes,
            State::Open { until, .. } if now < until => Allowed::No { until },
            State::Open { .. } => Allowed::Trial,
        }
    }

    /// A call starts. Only a trial matters: it is the only one until it ends, or until the open
    /// period has passed once more.
    pub fn started(&mut self, now: Instant) {
        if let State::Open {
            until, openings, ..
        } = self.state
            && now >= until
        {
            self.state = State::Open {
                until: now + self.wait(openings),
                openings,
                trial: true,
            };
        }
    }

    /// The trial that was started was not made after all: the next one may be made at once.
    pub fn trial_withdrawn(&mut self, now: Instant) {
        if let State::Open {
            openings,
            trial: true,
            ..
        } = self.state
        {
            self.state = State::Open {
                until: now,
                openings,
                trial: false,
            };
        }
    }

    /// A call has ended; `reached` as [`reached`] tells it. Any success closes the breaker. While it
    /// is open, only the trial's failure counts: the failures of calls that were under way when it
    /// opened say nothing new.
    pub fn record(&mut self, now: Instant, reached: bool, is_trial: bool) {
        self.state = match self.state {
            _ if reached => State::CLOSED,
            State::Closed { failures, since } => {
                let since = since.unwrap_or(now);
                let failures = failures.saturating_add(1);
                let lasts = now.duration_since(since) >= ROW_LASTS;
                if failures >= self.settings.failures && lasts {
                    self.open(now, 0)
                } else {
                    let since = Some(since);
                    State::Closed { failures, since }
                }
            }
            State::Open {
                openings,
                trial: true,
                ..
            } if is_trial => self.open(now, openings.saturating_add(1)),
            open @ State::Open { .. } => open,
        };
    }

    fn open(&self, now: Instant, openings: u32) -> State {
        State::Open {
            until: now + self.wait(openings),
            openings,
            trial: false,
        }
    }

    /// The open period doubles with each opening in a row, up to its cap.
    fn wait(&self, openings: u32) -> Duration {
        let factor = 1u32.checked_shl(openings).unwrap_or(u32::MAX);
        let wait = self.settings.open.checked_mul(factor);
        wait.unwrap_or(self.settings.open_cap)
            .min(self.settings.open_cap)
    }
}

/// Whether a try reached the carrier: being rejected or throttled is an answer, so it is at work.
#[must_use]
pub fn reached(result: &Result<Accepted, SendError>) -> bool {
    match result {
        Ok(_) => true,
        Err(error) => match error.verdict {
            SendVerdict::Rejected | SendVerdict::Throttled => true,
            SendVerdict::NotSent | SendVerdict::Unknown => false,
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OPEN: Duration = Duration::from_secs(1);

    fn breaker() -> (Breaker, Instant) {
        let settings = BreakerSettings {
            failures: 3,
            open: OPEN,
            open_cap: OPEN * 5,
        };
        (Breaker::new(settings), Instant::now())
    }

    fn opened() -> (Breaker, Instant) {
        let (mut breaker, now) = breaker();
        for _ in 0..2 {
            breaker.record(now, false, true);
        }
        breaker.record(now + ROW_LASTS, false, true);
        (breaker, now + ROW_LASTS)
    }

    #[test]
    fn a_burst_of_failures_does_not_open_it_and_a_lasting_row_does() {
        let (mut breaker, now) = breaker();
        for _ in 0..100 {
            breaker.record(now, false, true);
        }
        assert_eq!(breaker.allows(now), Allowed::Yes);
        breaker.record(now + ROW_LASTS / 2, true, true);
        breaker.record(now + ROW_LASTS, false, true);
        assert_eq!(
            breaker.allows(now + ROW_LASTS),
            Allowed::Yes,
            "a success ended the row"
        );
        assert!(opened().0.is_open());
    }

    #[test]
    fn jobs_that_have_failed_before_are_the_trial_only_after_a_while() {
        let (breaker, now) = opened();
        assert!(!breaker.any_job_may_try(now + OPEN));
        assert!(breaker.any_job_may_try(now + OPEN + TRIED_WAIT));
    }

    #[test]
    fn it_opens_after_failures_in_a_row_only() {
        let (mut breaker, now) = breaker();
        for reached in [false, false, true, false, false] {
            breaker.record(now, reached, true);
        }
        let later = now + ROW_LASTS;
        assert_eq!(breaker.allows(later), Allowed::Yes);
        breaker.record(later, false, true);
        let until = later + OPEN;
        assert_eq!(breaker.allows(later), Allowed::No { until });
    }

    #[test]
    fn after_the_open_period_there_is_one_trial() {
        let (mut breaker, now) = opened();
        let later = now + OPEN;
        assert_eq!(breaker.allows(later), Allowed::Trial);
        assert_eq!(breaker.allows(later), Allowed::Trial, "asking is no trial");
        breaker.started(later);
        assert_eq!(
            breaker.allows(later),
            Allowed::No {
                until: later + OPEN
            }
        );
        breaker.record(later, true, true);
        assert_eq!(breaker.allows(later), Allowed::Yes);
    }

    #[test]
    fn failed_trials_double_the_wait_up_to_the_cap() {
        let (mut breaker, mut now) = opened();
        for seconds in [2, 4, 5, 5] {
            let Allowed::No { until } = breaker.allows(now) else {
                panic!("it should be open");
            };
            now = until;
            breaker.started(now);
            breaker.record(now, false, true);
            let until = now + Duration::from_secs(seconds);
            assert_eq!(breaker.allows(now), Allowed::No { until });
        }
    }

    #[test]
    fn late_failures_do_not_prolong_the_open_period() {
        let (mut breaker, now) = opened();
        for _ in 0..100 {
            breaker.record(now + OPEN / 2, false, false);
        }
        assert_eq!(breaker.allows(now + OPEN), Allowed::Trial);
        breaker.started(now + OPEN);
        breaker.record(now + OPEN, false, false);
        assert_eq!(
            breaker.allows(now + OPEN * 2),
            Allowed::Trial,
            "only the trial's own end counts"
        );
    }

    #[test]
    fn a_trial_that_never_ends_is_followed_by_another() {
        let (mut breaker, now) = opened();
        breaker.started(now + OPEN);
        assert_eq!(breaker.allows(now + OPEN * 2), Allowed::Trial);
    }

    #[test]
    fn a_rejection_reaches_the_carrier() {
        let error = |verdict| {
            Err(SendError {
                verdict,
                retry_after: None,
                detail: "".into(),
            })
        };
        assert!(reached(&Ok(Accepted::default())));
        assert!(reached(&error(SendVerdict::Rejected)));
        assert!(reached(&error(SendVerdict::Throttled)));
        assert!(!reached(&error(SendVerdict::NotSent)));
        assert!(!reached(&error(SendVerdict::Unknown)));
    }

    proptest! {
        /// Whatever happens, it never stays shut for longer than the cap after the last event.
        #[test]
        fn it_always_opens_up_again(steps in prop::collection::vec((0..3u8, 0..3_000u64), 0..60)) {
            let (mut breaker, mut now) = breaker();
            for (what, millis) in steps {
                now += Duration::from_millis(millis);
                match what {
                    0 => breaker.record(now, false, true),
                    1 => breaker.record(now, true, true),
                    _ => breaker.started(now),
                }
            }
            let later = breaker.allows(now + OPEN * 5);
            prop_assert!(matches!(later, Allowed::Yes | Allowed::Trial), "{later:?}");
        }
    }

    #[test]
    fn a_trial_that_was_not_made_can_be_made_at_once() {
        let (mut breaker, now) = opened();
        let later = now + OPEN;
        breaker.started(later);
        assert!(matches!(breaker.allows(later), Allowed::No { .. }));
        breaker.trial_withdrawn(later);
        assert_eq!(breaker.allows(later), Allowed::Trial);
    }
}
