//! How many workers share the queues, as the broker counts those of the lanes' shared ones.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use crate::intake::HotBroker;

/// How often the broker is asked.
const LOOK: Duration = Duration::from_secs(5);

/// How often until it has answered once.
const FIRST_LOOK: Duration = Duration::from_millis(250);

/// Follows the number of workers, for as long as anybody is told.
pub(super) async fn follow(broker: &HotBroker, tell: watch::Sender<Sharers>) {
    while !tell.is_closed() {
        if let Some(session) = broker.session() {
            match session.workers().await {
                Ok(workers) => {
                    tell.send_if_modified(|sharers| sharers.note(workers));
                }
                Err(error) => {
                    tracing::debug!(%error, "the broker does not say how many workers there are");
                }
            }
        }
        let is_known = tell.borrow().last.is_some();
        sleep(if is_known { LOOK } else { FIRST_LOOK }).await;
    }
}

/// By how many workers each queue is taken to be shared.
///
/// To take another number of jobs at a time, a worker has to leave a queue and come back. So the number
/// is rounded down to a power of two, and one that differs has to be seen twice: a worker that restarts
/// changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sharers {
    count: u32,
    last: Option<u32>,
}

impl Default for Sharers {
    /// One, until the broker has answered.
    fn default() -> Self {
        Self {
            count: 1,
            last: None,
        }
    }
}

impl Sharers {
    /// How many there are taken to be: at least 1.
    pub(super) fn count(self) -> u32 {
        self.count
    }

    /// Notes how many the broker has counted; true when that changes the number.
    fn note(&mut self, workers: u32) -> bool {
        let seen = 1 << workers.max(1).ilog2();
        let before = self.last.replace(seen);
        let is_sure = before.is_none_or(|before| before == seen);
        is_sure && std::mem::replace(&mut self.count, seen) != seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_count_holds_and_another_when_it_is_seen_twice() {
        let mut sharers = Sharers::default();
        let mut counts = Vec::new();
        for workers in [4, 3, 1, 5, 7, 19, 31, 1, 0] {
            sharers.note(workers);
            counts.push(sharers.count());
        }
        assert_eq!(counts, [4, 4, 4, 4, 4, 4, 16, 16, 1]);
    }

    #[test]
    fn only_a_change_is_told() {
        let mut sharers = Sharers::default();
        assert!(!sharers.note(1));
        assert!(!sharers.note(2));
        assert!(sharers.note(2));
        assert!(!sharers.note(2));
    }
}
