//! How far a lane's ceiling is from being reached, for a client.

use axum::http::{HeaderMap, HeaderName};

use crate::domain::{Counter, Lane};

static LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
static REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
static RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

const SECOND_MS: u64 = 1_000;

/// A lane's ceiling and its account's counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// The lane.
    pub lane: Lane,
    /// Its ceiling, in messages per window.
    pub limit: u32,
    /// What is left of it in this window.
    pub remaining: u32,
    /// When the window ends, in whole seconds since the Unix epoch, rounded up.
    pub reset: u64,
}

impl Rate {
    /// By the counter as it was at `at_ms`, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn of(lane: Lane, limit: u32, counter: Counter, at_ms: u64) -> Self {
        let left = u64::try_from(counter.window_left.as_millis()).unwrap_or(0);
        Self {
            lane,
            limit,
            remaining: limit.saturating_sub(counter.count),
            reset: at_ms.saturating_add(left).div_ceil(SECOND_MS),
        }
    }

    /// Tells it in headers.
    pub fn tell(self, headers: &mut HeaderMap) {
        headers.insert(LIMIT.clone(), self.limit.into());
        headers.insert(REMAINING.clone(), self.remaining.into());
        headers.insert(RESET.clone(), self.reset.into());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn rate(count: u32, left: u64, at_ms: u64) -> (u32, u64) {
        let counter = Counter {
            count,
            window_left: Duration::from_millis(left),
        };
        let rate = Rate::of(Lane::Marketing, 80, counter, at_ms);
        (rate.remaining, rate.reset)
    }

    #[test]
    fn what_is_left_never_goes_below_nothing_and_the_end_is_never_too_early() {
        assert_eq!(rate(0, 0, 1_000), (80, 1));
        assert_eq!(rate(1, 999, 1_500), (79, 3));
        assert_eq!(rate(95, 1, 2_000), (0, 3));
    }
}
