//! How fast jobs may go back to the queues.

use std::time::Duration;

use tokio::time::Instant;

/// A token bucket: at most `per_second` on average, and a tenth of a second's worth at once.
///
/// Sheds are paced because each one costs the broker a hundred times what a dispatch costs, and
/// because the delay queue gives back about 7,000 messages a second on a small machine: more than
/// that would pile up in it.
#[derive(Debug)]
pub struct Pace {
    interval: Duration,
    burst: u32,
    /// The instant up to which everything is spent.
    spent_until: Instant,
}

impl Pace {
    /// A pace of so many per second; none at all is read as one.
    #[must_use]
    pub fn per_second(count: u32, now: Instant) -> Self {
        let count = count.max(1);
        let burst = (count / 10).max(1);
        let interval = Duration::from_secs(1) / count;
        Self {
            interval,
            burst,
            spent_until: now.checked_sub(interval * burst).unwrap_or(now),
        }
    }

    /// Spends one, if one is there.
    pub fn spend(&mut self, now: Instant) -> bool {
        let free = self.is_free(now);
        if free {
            self.spent_until = self.start(now) + self.interval;
        }
        free
    }

    /// Whether one is there.
    #[must_use]
    pub fn is_free(&self, now: Instant) -> bool {
        self.start(now) + self.interval <= now
    }

    /// From when on what is not spent counts.
    fn start(&self, now: Instant) -> Instant {
        let floor = now.checked_sub(self.interval * self.burst);
        self.spent_until.max(floor.unwrap_or(self.spent_until))
    }

    /// When the next one will be there.
    #[must_use]
    pub fn next(&self) -> Instant {
        self.spent_until + self.interval
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_gives_what_was_set_and_a_burst() {
        let start = Instant::now() + Duration::from_secs(10);
        let mut pace = Pace::per_second(100, start);
        let at_once = (0..1000).filter(|_| pace.spend(start)).count();
        assert_eq!(at_once, 10);
        let over_a_second = (1..=1000)
            .filter(|ms| pace.spend(start + Duration::from_millis(*ms)))
            .count();
        assert_eq!(over_a_second, 100);
    }

    #[test]
    fn rest_does_not_save_up_more_than_the_burst() {
        let start = Instant::now() + Duration::from_secs(10);
        let mut pace = Pace::per_second(50, start);
        let later = start + Duration::from_secs(60);
        assert_eq!((0..1000).filter(|_| pace.spend(later)).count(), 5);
        assert!(pace.next() > later);
    }
}
