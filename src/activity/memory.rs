//! The seconds of one process that has nothing outside it.

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};

use super::second::Second;
use super::store::{Reading, Store, WindowNow};
use crate::dispatch::ports::Clock;
use crate::domain::AccountId;
use crate::meter::MemoryStore;

type Seconds = BTreeMap<u64, HashMap<AccountId, Second>>;

/// Seconds in memory, beside the counters there.
pub struct MemorySeconds {
    seconds: Mutex<Seconds>,
    counters: MemoryStore,
    clock: Arc<dyn Clock>,
}

impl MemorySeconds {
    /// No seconds yet, beside these counters.
    #[must_use]
    pub fn beside(counters: MemoryStore, clock: Arc<dyn Clock>) -> Self {
        Self {
            seconds: Mutex::default(),
            counters,
            clock,
        }
    }

    pub(super) fn now_ms(&self) -> u64 {
        u64::try_from(self.clock.now().as_millisecond()).unwrap_or_default()
    }

    pub(super) fn leave(&self, second: u64, counted: &[(AccountId, Second)]) {
        let mut seconds = self.seconds.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = second.saturating_sub(Store::KEPT.as_secs());
        *seconds = seconds.split_off(&oldest);
        let accounts = seconds.entry(second).or_default();
        for (account, second) in counted {
            accounts.entry(account.clone()).or_default().merge(second);
        }
    }

    pub(super) fn read(&self, account: &AccountId, within: RangeInclusive<u64>) -> Reading {
        let counter = self.counters.counter(account);
        let seconds = self.seconds.lock().unwrap_or_else(PoisonError::into_inner);
        let mine = seconds.range(within).filter_map(|(at, accounts)| {
            let second = accounts.get(account)?;
            Some((*at, *second))
        });
        Reading {
            window: WindowNow {
                used: counter.count,
                left: counter.window_left,
            },
            seconds: mine.collect(),
        }
    }
}

impl std::fmt::Debug for MemorySeconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemorySeconds").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::activity::Count;
    use crate::clock::SystemClock;
    use crate::domain::Lane;

    #[tokio::test]
    async fn seconds_are_forgotten_and_those_of_other_accounts_are_not_shown() {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let counters = MemoryStore::new(Duration::ZERO, Arc::clone(&clock));
        let store = MemorySeconds::beside(counters, clock);
        let [mine, other] = ["mine", "other"].map(|name| AccountId::parse(name).unwrap());
        let mut second = Second::default();
        second.lane_mut(Lane::Marketing).add(Count::Dispatched, 1);
        for at in 1_000..1_200 {
            store.leave(at, &[(mine.clone(), second)]);
        }
        store.leave(1_199, &[(mine.clone(), second), (other.clone(), second)]);
        let read = |account| store.read(account, 0..=2_000).seconds;
        let (first, _) = read(&mine).into_iter().next().unwrap();
        assert_eq!(first, 1_199 - Store::KEPT.as_secs());
        let lane = *read(&mine)[&1_199].lane(Lane::Marketing);
        assert_eq!(lane.get(Count::Dispatched), 2);
        assert_eq!(read(&other).len(), 1);
    }
}
