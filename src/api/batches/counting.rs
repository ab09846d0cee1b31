//! What became of batches, counted now and then.
//!
//! A count of a million jobs takes the database a quarter of a second. However often it is asked for,
//! it is made anew only when the last one is old in proportion to what it took, and few are made at one
//! time: asking for batches never takes more than a small part of the database. One that came to nothing
//! is not begun again at once, and nobody waits for long behind those of others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use super::store::Figures;
use crate::dispatch::ports::RecordsError;
use crate::domain::AccountId;

/// Counts that are made at one time.
const AT_ONCE: usize = 2;

/// How much longer a count holds than it took, and how long at least.
const HOLDS_TIMES: u32 = 20;
const HOLDS: Duration = Duration::from_millis(500);

/// How long a count is not tried again that the database did not make in time.
const RESTS: Duration = Duration::from_secs(20);

/// How long the counts of other batches are waited for.
const TURN_WITHIN: Duration = Duration::from_millis(300);

/// Batches whose counts are remembered.
const REMEMBERED: usize = 1_000;

type Key = (AccountId, String);

/// Counts that were made, or tried.
#[derive(Debug)]
pub(super) struct Counting {
    made: Mutex<HashMap<Key, Made>>,
    turns: Semaphore,
}

#[derive(Debug, Clone)]
struct Made {
    /// `None`: it was never made in time.
    counted: Option<Counted>,
    holds_until: Instant,
}

/// A count.
#[derive(Debug, Clone)]
pub(super) struct Counted {
    pub(super) figures: Arc<Figures>,
    /// When it was made.
    pub(super) at: Timestamp,
}

impl Default for Counting {
    fn default() -> Self {
        Self {
            made: Mutex::default(),
            turns: Semaphore::new(AT_ONCE),
        }
    }
}

impl Counting {
    /// The figures of a batch, made by `count` where the last ones do not hold any more. Where they
    /// cannot be made in time, the last ones, however old; `None` where there are none.
    ///
    /// # Errors
    /// When the database does not answer at all.
    pub(super) async fn of(
        &self,
        account: &AccountId,
        batch: &str,
        now: impl Fn() -> Timestamp,
        count: impl AsyncFnOnce() -> Result<Figures, RecordsError>,
    ) -> Result<Option<Counted>, RecordsError> {
        let key = (account.clone(), batch.to_owned());
        if let Some(made) = self.holding(&key) {
            return Ok(made.counted);
        }
        let Ok(Ok(_turn)) = timeout(TURN_WITHIN, self.turns.acquire()).await else {
            return Ok(self.last(&key));
        };
        // Somebody else may have made it meanwhile.
        if let Some(made) = self.holding(&key) {
            return Ok(made.counted);
        }
        let (at, began) = (now(), Instant::now());
        match count().await {
            Ok(figures) => {
                let figures = Arc::new(figures);
                let counted = Some(Counted { figures, at });
                let took = Instant::now() - began;
                let holds = took.saturating_mul(HOLDS_TIMES).max(HOLDS);
                self.remember(key, counted.clone(), holds);
                Ok(counted)
            }
            Err(RecordsError::TimedOut) => {
                let last = self.last(&key);
                self.remember(key, last.clone(), RESTS);
                Ok(last)
            }
            Err(error) => Err(error),
        }
    }

    /// What is answered without counting, if anything.
    fn holding(&self, key: &Key) -> Option<Made> {
        let made = self.made();
        let made = made
            .get(key)
            .filter(|made| Instant::now() < made.holds_until);
        made.cloned()
    }

    fn last(&self, key: &Key) -> Option<Counted> {
        self.made().get(key).and_then(|made| made.counted.clone())
    }

    fn remember(&self, key: Key, counted: Option<Counted>, holds: Duration) {
        let now = Instant::now();
        let mut all = self.made();
        if all.len() >= REMEMBERED && !all.contains_key(&key) {
            all.retain(|_, made| now < made.holds_until);
        }
        if all.len() >= REMEMBERED {
            all.clear();
        }
        let made = Made {
            counted,
            holds_until: now + holds,
        };
        all.insert(key, made);
    }

    fn made(&self) -> MutexGuard<'_, HashMap<Key, Made>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::time::sleep;

    use super::*;

    struct Rig {
        counting: Counting,
        account: AccountId,
        counts: Cell<u64>,
    }

    impl Rig {
        fn new() -> Self {
            Self {
                counting: Counting::default(),
                account: AccountId::parse("acme").unwrap(),
                counts: Cell::new(0),
            }
        }

        /// How many counts the answer knows of, where each takes so long.
        async fn ask(&self, takes: Duration, fails: Option<RecordsError>) -> Option<u64> {
            let count = async || {
                sleep(takes).await;
                if let Some(error) = fails {
                    return Err(error);
                }
                self.counts.set(self.counts.get() + 1);
                Ok(Figures {
                    waiting: [("paused".to_owned(), self.counts.get())].into(),
                    ..Figures::default()
                })
            };
            let now = || Timestamp::UNIX_EPOCH;
            let counted = self.counting.of(&self.account, "spring", now, count).await;
            counted
                .unwrap()
                .map(|counted| counted.figures.waiting["paused"])
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_count_holds_in_proportion_to_what_it_took() {
        let rig = Rig::new();
        let takes = Duration::from_millis(100);
        assert_eq!(rig.ask(takes, None).await, Some(1));
        sleep(Duration::from_millis(1_990)).await;
        assert_eq!(rig.ask(takes, None).await, Some(1));
        sleep(Duration::from_millis(20)).await;
        assert_eq!(rig.ask(takes, None).await, Some(2));
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_counted_in_time_is_as_it_was_last() {
        let rig = Rig::new();
        let late = Some(RecordsError::TimedOut);
        assert_eq!(rig.ask(Duration::from_secs(1), late).await, None);
        sleep(RESTS).await;
        assert_eq!(rig.ask(Duration::ZERO, None).await, Some(1));
        sleep(Duration::from_secs(60)).await;
        assert_eq!(rig.ask(Duration::from_secs(1), late).await, Some(1));
    }

    /// Asked for each second, it would otherwise keep the database at it for ever.
    #[tokio::test(start_paused = true)]
    async fn what_was_not_counted_in_time_is_not_tried_again_at_once() {
        let rig = Rig::new();
        let takes = Duration::from_secs(1);
        assert_eq!(rig.ask(takes, None).await, Some(1));
        sleep(Duration::from_secs(60)).await;
        assert_eq!(rig.ask(takes, Some(RecordsError::TimedOut)).await, Some(1));
        let began = Instant::now();
        while began.elapsed() + Duration::from_secs(1) < RESTS {
            sleep(Duration::from_secs(1)).await;
            assert_eq!(rig.ask(takes, None).await, Some(1));
        }
        sleep(Duration::from_secs(2)).await;
        assert_eq!(rig.ask(takes, None).await, Some(2));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_long_behind_the_counts_of_others() {
        let rig = Rig::new();
        let others = rig.counting.turns.acquire_many(2).await.unwrap();
        let began = Instant::now();
        assert_eq!(rig.ask(Duration::ZERO, None).await, None);
        assert!(began.elapsed() <= TURN_WITHIN + Duration::from_millis(1));
        drop(others);
        assert_eq!(rig.ask(Duration::ZERO, None).await, Some(1));
    }
}
