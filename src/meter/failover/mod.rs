//! The meter that always answers: from the shared counters, and without them from this process's.
//!
//! What makes falling open safe is that one account's decisions never change sides within a
//! window. A local window goes on from the count and end that the shared counter last reported,
//! leaves room for what other calls may be admitting at that moment, and has to end before the
//! account's next decision asks the shared counter again.
//!
//! Of frequency caps nobody knows here what other replicas have sent: they let everything pass,
//! counted. The ceilings of numbers and services hold for this process alone. Their windows begin
//! with what the shared counters let this process send, so that falling open grants no second
//! ceiling; the shared counters learn nothing of what was sent without them, so that the return
//! may, once.

mod announcer;
mod backlog;
mod breaker;
mod keeper;
mod plan;
mod state;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::claims::Moment;
use super::local::Asked;
use super::{ClaimNow, CounterStore, Standing, StoreAnswer, StoreError};
use crate::dispatch::ports::{AccountAnswer, AccountRequest, Clock, Conclusion, JobRequest, Meter};
use crate::domain::{AccountId, JobId};
use crate::telemetry::Telemetry;
use state::State;

/// How a [`Failover`] treats its store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailoverOptions {
    /// The longest wait for the store, a little above the store's own time-out and low enough for
    /// a local decision within 50 ms.
    pub patience: Duration,
    /// How many calls in a row must fail before the store is left alone; at least 1.
    pub failures_to_open: u32,
    /// How often a store that is left alone is probed.
    pub probe_every: Duration,
    /// How long claims are remembered here after their try's deadline; zero turns claims off, as
    /// it does in the store.
    pub claim_life: Duration,
    /// How many claims, how many windows of numbers and services, and how many unrecorded ends of
    /// tries are remembered here at most.
    pub remembered: usize,
}

impl Default for FailoverOptions {
    fn default() -> Self {
        Self {
            patience: Duration::from_millis(40),
            failures_to_open: 3,
            probe_every: Duration::from_millis(250),
            claim_life: Duration::from_secs(15 * 60),
            remembered: 50_000,
        }
    }
}

/// What the meter and its keeper share.
struct Shared<S> {
    store: S,
    options: FailoverOptions,
    clock: Arc<dyn Clock>,
    /// Held for moments, never across an await.
    state: Mutex<State>,
    /// Wakes the keeper.
    care: Notify,
}

impl<S: CounterStore> Shared<S> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Moment {
        Moment {
            instant: Instant::now(),
            wall: self.clock.now(),
        }
    }

    async fn ask(&self, requests: &[AccountRequest]) -> Vec<Result<StoreAnswer, StoreError>> {
        if requests.is_empty() {
            return Vec::new();
        }
        tokio::time::timeout(self.options.patience, self.store.admit(requests))
            .await
            .unwrap_or_else(|_| vec![Err(StoreError::TimedOut); requests.len()])
    }

    async fn record(&self, conclusions: &[Conclusion]) -> Result<(), StoreError> {
        tokio::time::timeout(self.options.patience, self.store.conclude(conclusions))
            .await
            .unwrap_or(Err(StoreError::TimedOut))
    }
}

/// A [`Meter`] over a [`CounterStore`] that may go away.
pub struct Failover<S> {
    shared: Arc<Shared<S>>,
    keeper: AbortHandle,
}

impl<S: CounterStore> Failover<S> {
    /// A meter over `store`. Spawns a task, which ends when the meter is dropped, that looks after
    /// a store that is away; so this must be called within a tokio runtime.
    #[must_use]
    pub fn new(
        store: S,
        options: FailoverOptions,
        clock: Arc<dyn Clock>,
        telemetry: Telemetry,
    ) -> Self {
        let shared = Arc::new(Shared {
            state: Mutex::new(State::new(&options, telemetry)),
            store,
            options,
            clock,
            care: Notify::new(),
        });
        let keeper = tokio::spawn(keeper::run(Arc::clone(&shared))).abort_handle();
        Self { shared, keeper }
    }

    /// Tries once more to record what could not be recorded so far, for an orderly shutdown.
    ///
    /// # Errors
    /// When the store does not take it: then what is left is lost with this process.
    pub async fn flush(&self) -> Result<(), StoreError> {
        keeper::replay(&self.shared).await
    }
}

impl<S: CounterStore> Failover<S> {
    /// What an admission of the job would meet. Nothing is changed by asking, and nobody's slot is
    /// held up by it: it may take longer than a decision.
    ///
    /// # Errors
    /// When the shared counters do not answer.
    pub async fn look(
        &self,
        account: &AccountId,
        job: &JobRequest,
    ) -> Result<Standing, StoreError> {
        self.shared.store.look(account, job).await
    }

    /// How a job stands: by the shared claims, and where they know nothing of it or do not answer,
    /// by what this process has admitted itself.
    ///
    /// # Errors
    /// When the shared counters do not answer, and nothing is known here.
    pub async fn claim(&self, account: &AccountId, id: &JobId) -> Result<ClaimNow, StoreError> {
        let shared = self.look(account, &JobRequest::bare(id.clone())).await;
        let shared = shared.map(|standing| standing.claim);
        if shared.as_ref().is_ok_and(|claim| *claim != ClaimNow::Free) {
            return shared;
        }
        let state = self.shared.state();
        let own = state.books.claims.standing(account, id, Instant::now());
        match own.into() {
            ClaimNow::Free => shared,
            own => Ok(own),
        }
    }
}

impl<S> Drop for Failover<S> {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

impl<S> std::fmt::Debug for Failover<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Failover").finish_non_exhaustive()
    }
}

impl<S: CounterStore> Meter for Failover<S> {
    async fn admit(&self, requests: Vec<AccountRequest>) -> Vec<AccountAnswer> {
        let now = self.shared.now();
        let plan = self.shared.state().plan(requests, now);
        let mut asking = Asking::start(&self.shared, &plan.asked);
        let results = self.shared.ask(&plan.asked).await;
        let now = self.shared.now();
        let mut state = self.shared.state();
        asking.finish(&mut state);
        let answers = state.settle(plan, results, now);
        if state.needs_care() {
            self.shared.care.notify_one();
        }
        answers
    }

    async fn conclude(&self, mut conclusions: Vec<Conclusion>) {
        if self.shared.options.claim_life.is_zero() {
            conclusions.retain(Conclusion::gives_up);
        }
        if conclusions.is_empty() {
            return;
        }
        let away = self.shared.state().away();
        let recorded = match away {
            None => self.shared.record(&conclusions).await,
            Some(why) => Err(why),
        };
        let now = self.shared.now();
        let mut state = self.shared.state();
        match recorded {
            Ok(()) => state.recorded(&conclusions, now),
            Err(why) => {
                if away.is_none() {
                    state.call_failed(why, now.instant);
                }
                state.unrecorded(conclusions, now);
                self.shared.care.notify_one();
            }
        }
    }
}

/// Jobs that the store is being asked about. They count as pending until the answer is settled,
/// or until the asking is dropped half-way.
struct Asking<'a, S: CounterStore> {
    shared: &'a Shared<S>,
    jobs: Vec<(AccountId, Asked)>,
}

impl<'a, S: CounterStore> Asking<'a, S> {
    fn start(shared: &'a Shared<S>, requests: &[AccountRequest]) -> Self {
        let jobs = requests.iter().map(|request| {
            let mut asked = Asked::default();
            for job in &request.jobs {
                asked[job.lane.index()] += 1;
            }
            (request.account.clone(), asked)
        });
        let jobs: Vec<_> = jobs.collect();
        if !jobs.is_empty() {
            shared.state().start(&jobs, Instant::now());
        }
        Self { shared, jobs }
    }

    fn finish(&mut self, state: &mut State) {
        state.finish(&self.jobs);
        self.jobs.clear();
    }
}

impl<S: CounterStore> Drop for Asking<'_, S> {
    fn drop(&mut self) {
        if !self.jobs.is_empty() {
            self.shared.state().finish(&self.jobs);
        }
    }
}
