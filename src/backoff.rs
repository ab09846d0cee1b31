//! Growing pauses between tries, for connections that must come back whatever happens.
//!
//! The `backoff` crate does the arithmetic. It carries an unmaintained advisory
//! (RUSTSEC-2025-0012), which is why it is used here and nowhere else: should it have to go, this
//! file is all there is to change. By default the crate gives up 15 minutes after the *first* try,
//! however well things went in between; a connection that lives for weeks must never give up, so
//! that limit is off.

use std::time::Duration;

use ::backoff::ExponentialBackoff;
use ::backoff::backoff::Backoff as _;

/// The first pause, before jitter.
const FIRST: Duration = Duration::from_millis(100);
/// How much longer each pause is than the one before.
const GROWTH: f64 = 2.0;
/// Each pause is drawn from the span of so much below to so much above its nominal length, so that
/// many replicas that lost the same broker do not come back in step.
const JITTER: f64 = 0.5;

/// An endless series of pauses: growing, jittered, capped.
#[derive(Debug)]
pub struct Retry {
    series: ExponentialBackoff,
    longest: Duration,
}

impl Retry {
    /// The longest pause where the caller has no other wish.
    pub const LONGEST: Duration = Duration::from_secs(30);

    /// Pauses of at most `longest`, jitter included.
    #[must_use]
    pub fn capped(longest: Duration) -> Self {
        let nominal_longest = longest.div_f64(1.0 + JITTER);
        let series = ExponentialBackoff {
            current_interval: FIRST.min(nominal_longest),
            initial_interval: FIRST.min(nominal_longest),
            randomization_factor: JITTER,
            multiplier: GROWTH,
            max_interval: nominal_longest,
            max_elapsed_time: None,
            ..ExponentialBackoff::default()
        };
        Self { series, longest }
    }

    /// The pause before the next try.
    pub fn next_pause(&mut self) -> Duration {
        self.series
            .next_backoff()
            .unwrap_or(self.longest)
            .min(self.longest)
    }

    /// Things went well: the next pause is the shortest again.
    pub fn reset(&mut self) {
        self.series.reset();
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self::capped(Self::LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_cap_and_never_end() {
        let mut retry = Retry::capped(Duration::from_secs(3));
        let pauses: Vec<_> = (0..10_000).map(|_| retry.next_pause()).collect();
        assert!(pauses[0] >= Duration::from_millis(50) && pauses[0] <= Duration::from_millis(150));
        assert!(pauses.iter().all(|pause| *pause <= Duration::from_secs(3)));
        assert!(
            pauses[9_000..]
                .iter()
                .all(|pause| *pause >= Duration::from_secs(1))
        );
    }

    #[test]
    fn nothing_gives_up_after_a_quarter_of_an_hour() {
        assert_eq!(Retry::default().series.max_elapsed_time, None);
    }

    #[test]
    fn success_starts_the_series_anew() {
        let mut retry = Retry::default();
        for _ in 0..20 {
            retry.next_pause();
        }
        retry.reset();
        assert!(retry.next_pause() <= Duration::from_millis(150));
    }

    #[test]
    fn pauses_are_jittered() {
        let first = |_| Retry::default().next_pause();
        let pauses: std::collections::HashSet<_> = (0..20).map(first).collect();
        assert!(pauses.len() > 1);
    }
}
