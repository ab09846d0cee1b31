//! The shared counters of a simulated run.

use tokio::time::Instant;

use super::{Admission, Outside};
use crate::dispatch::ports::{AccountRequest, Conclusion, JobRequest};
use crate::domain::{AccountId, Lane, Verdict};
use crate::meter::{CounterStore, MemoryStore, Standing, StoreAnswer, StoreError};

/// The store of counters that all workers share, as one worker reaches it.
pub struct UnsureStore {
    pub store: MemoryStore,
    pub outside: Outside,
    pub worker: usize,
}

impl UnsureStore {
    async fn fate(&self) -> Result<(), StoreError> {
        self.outside.pass(2).await;
        if self.outside.is_within(&self.outside.plan.outages) {
            self.outside.pass(60).await;
            return Err(StoreError::Unreachable);
        }
        if self.outside.happens(self.outside.plan.faults.store_fails) {
            return Err(StoreError::Failed);
        }
        Ok(())
    }

    fn note(&self, requests: &[AccountRequest], answers: &[Result<StoreAnswer, StoreError>]) {
        let mut seen = self.outside.seen();
        let now = Instant::now();
        for (request, answer) in requests.iter().zip(answers) {
            let Ok(answer) = answer else { continue };
            for (job, verdict) in request.jobs.iter().zip(&answer.verdicts) {
                if matches!(verdict, Verdict::Admitted { .. }) {
                    let account = request.account.clone();
                    seen.admissions.push(Admission {
                        at: now,
                        account,
                        lane: job.lane,
                    });
                    seen.admitted_at.insert(job.id.to_string(), now);
                }
            }
        }
    }
}

impl CounterStore for UnsureStore {
    async fn admit(&self, requests: &[AccountRequest]) -> Vec<Result<StoreAnswer, StoreError>> {
        if !self.outside.plan.records {
            for lane in Lane::ALL {
                let jobs = requests.iter().flat_map(|request| &request.jobs);
                let mut ids = jobs
                    .filter(|job| job.lane == lane)
                    .map(|job| job.id.as_str())
                    .peekable();
                if ids.peek().is_some() {
                    self.outside.check_order(self.worker, lane, ids);
                }
            }
        }
        if let Err(error) = self.fate().await {
            return requests.iter().map(|_| Err(error)).collect();
        }
        let answers = self.store.admit(requests).await;
        self.note(requests, &answers);
        self.outside.pass(2).await;
        if self
            .outside
            .happens(self.outside.plan.faults.store_reply_lost)
        {
            return requests.iter().map(|_| Err(StoreError::TimedOut)).collect();
        }
        answers
    }

    async fn conclude(&self, conclusions: &[Conclusion]) -> Result<(), StoreError> {
        self.fate().await?;
        self.store.conclude(conclusions).await
    }

    async fn look(&self, account: &AccountId, job: &JobRequest) -> Result<Standing, StoreError> {
        self.fate().await?;
        self.store.look(account, job).await
    }

    async fn probe(&self) -> Result<(), StoreError> {
        self.fate().await
    }
}
