//! What the log says about the store coming and going: each change once, and few lines even when
//! it comes and goes all the time.

use std::time::Duration;

use tokio::time::Instant;

use crate::meter::StoreError;

/// So many lines may follow each other at once.
const BURST: u32 = 4;
/// And one more becomes possible each time this has passed.
const REFILL: Duration = Duration::from_secs(10);

/// Allows few lines in a given time.
#[derive(Debug)]
struct Gate {
    left: u32,
    burst: u32,
    refilled: Option<Instant>,
}

impl Gate {
    fn new(burst: u32) -> Self {
        Self {
            left: burst,
            burst,
            refilled: None,
        }
    }

    fn pass(&mut self, now: Instant) -> bool {
        let since = *self.refilled.get_or_insert(now);
        let periods = (now - since).as_secs() / REFILL.as_secs();
        if periods > 0 {
            let more = u32::try_from(periods).unwrap_or(u32::MAX);
            self.left = self.left.saturating_add(more).min(self.burst);
            self.refilled = Some(now);
        }
        let passes = self.left > 0;
        self.left -= u32::from(passes);
        passes
    }
}

/// Keeps the log's picture of the store near the truth.
#[derive(Debug)]
pub(super) struct Announcer {
    announced: Option<StoreError>,
    changes: Gate,
    strays: Gate,
}

impl Announcer {
    pub(super) fn new() -> Self {
        Self {
            announced: None,
            changes: Gate::new(BURST),
            strays: Gate::new(1),
        }
    }

    /// Whether the log says what is true.
    pub(super) fn is_up_to_date(&self, away: Option<StoreError>) -> bool {
        self.announced == away
    }

    /// Logs whether the store is away, if the log does not say so already. A line that is too much
    /// now is made up for by a later call.
    pub(super) fn tell(&mut self, away: Option<StoreError>, now: Instant) {
        if self.is_up_to_date(away) || !self.changes.pass(now) {
            return;
        }
        self.announced = away;
        match away {
            None => tracing::info!(
                "the store of counters is back: decisions are shared by all replicas again"
            ),
            Some(why @ StoreError::Denied) => tracing::error!(
                reason = why.as_str(),
                "the store of counters refused our credentials: this process decides alone; check \
                 user and password in the Redis URL, and that this user may read and write the \
                 keys under the prefix, run EVALSHA and SCRIPT LOAD"
            ),
            Some(why) => tracing::warn!(
                reason = why.as_str(),
                "the store of counters is away ({why}): this process decides alone"
            ),
        }
    }

    /// Logs that a question to the store failed although it is not thought to be away.
    pub(super) fn stray(&mut self, why: StoreError, now: Instant) {
        if self.strays.pass(now) {
            tracing::warn!(
                reason = why.as_str(),
                "some decisions or results were kept to this process alone: {why}"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flapping_fills_no_log_and_the_last_state_is_told_in_the_end() {
        let start = Instant::now();
        let mut announcer = Announcer::new();
        for flap in 0..50u32 {
            let away = (flap % 2 == 0).then_some(StoreError::TimedOut);
            announcer.tell(away, start);
        }
        assert_eq!(announcer.changes.left, 0);
        announcer.tell(Some(StoreError::TimedOut), start);
        assert!(!announcer.is_up_to_date(Some(StoreError::TimedOut)));
        announcer.tell(Some(StoreError::TimedOut), start + REFILL);
        assert!(announcer.is_up_to_date(Some(StoreError::TimedOut)));
    }
}
