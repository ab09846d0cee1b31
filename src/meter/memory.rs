//! The store of counters for one process, and for simulations of many.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::claims::Moment;
use super::local::LocalCounters;
use super::{CounterStore, Standing, StoreAnswer, StoreError};
use crate::dispatch::ports::{AccountRequest, Clock, Conclusion, JobRequest};
use crate::domain::{AccountId, Counter};

/// So many claims, counts of caps and windows of numbers and services are kept at most. Beyond that
/// those next to expire give way.
const BOUND: usize = 1_000_000;

/// A [`CounterStore`] in memory. Its clones share one set of counters, as replicas share a server.
#[derive(Clone)]
pub struct MemoryStore {
    counters: Arc<Mutex<LocalCounters>>,
    clock: Arc<dyn Clock>,
}

impl MemoryStore {
    /// An empty store that keeps each claim for `claim_life` after its try's deadline; zero turns
    /// claims off. `clock` gives the times in records; windows and deadlines follow tokio's clock.
    #[must_use]
    pub fn new(claim_life: Duration, clock: Arc<dyn Clock>) -> Self {
        Self {
            counters: Arc::new(Mutex::new(LocalCounters::new(claim_life, BOUND))),
            clock,
        }
    }

    /// An account's counter at this moment; nothing is counted.
    #[must_use]
    pub fn counter(&self, account: &AccountId) -> Counter {
        let (counters, now) = self.open();
        counters.counter(account, now)
    }

    fn open(&self) -> (MutexGuard<'_, LocalCounters>, Moment) {
        let now = Moment {
            instant: Instant::now(),
            wall: self.clock.now(),
        };
        let counters = self.counters.lock();
        (counters.unwrap_or_else(PoisonError::into_inner), now)
    }
}

impl std::fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

impl CounterStore for MemoryStore {
    async fn admit(&self, requests: &[AccountRequest]) -> Vec<Result<StoreAnswer, StoreError>> {
        let (mut counters, now) = self.open();
        requests
            .iter()
            .map(|request| Ok(counters.admit(request, now)))
            .collect()
    }

    async fn conclude(&self, conclusions: &[Conclusion]) -> Result<(), StoreError> {
        let (mut counters, now) = self.open();
        for conclusion in conclusions {
            counters.conclude(conclusion, now);
        }
        Ok(())
    }

    async fn look(&self, account: &AccountId, job: &JobRequest) -> Result<Standing, StoreError> {
        let (counters, now) = self.open();
        Ok(counters.look(account, job, now.instant))
    }

    async fn probe(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
