//! A meter over a store that can be told how to misbehave.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::sleep;

use super::super::*;
use crate::dispatch::ports::{Door, JobRequest, TryId, TryResult};
use crate::domain::{Budget, Ceilings, JobId, Lane, Limit, MeterMode, Reserve, Verdict};
use crate::meter::MemoryStore;

pub(super) struct StillClock;

impl Clock for StillClock {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

/// How the store behaves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Mood {
    Works,
    /// Works, but only after so many milliseconds.
    Slow(u64),
    Fails(StoreError),
    Hangs,
    /// Counts, and then nothing is heard of it.
    LosesReplies,
    /// Fails for the account "ill" only.
    FailsForOne,
}

#[derive(Clone)]
pub(super) struct Scripted {
    pub(super) inner: MemoryStore,
    pub(super) mood: Arc<Mutex<Mood>>,
    calls: Arc<Mutex<u32>>,
}

impl Scripted {
    pub(super) fn new(mood: Mood) -> Self {
        Self::with_claims(mood, LIFE)
    }

    fn with_claims(mood: Mood, life: Duration) -> Self {
        Self {
            inner: MemoryStore::new(life, Arc::new(StillClock)),
            mood: Arc::new(Mutex::new(mood)),
            calls: Arc::default(),
        }
    }

    pub(super) fn become_(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    pub(super) fn calls(&self) -> u32 {
        *self.calls.lock().unwrap()
    }

    async fn suffer(&self) -> Result<(), StoreError> {
        let mood = *self.mood.lock().unwrap();
        match mood {
            Mood::Works | Mood::FailsForOne | Mood::LosesReplies => Ok(()),
            Mood::Slow(millis) => {
                sleep(Duration::from_millis(millis)).await;
                Ok(())
            }
            Mood::Fails(why) => Err(why),
            Mood::Hangs => std::future::pending().await,
        }
    }

    async fn lose_reply(&self) {
        if *self.mood.lock().unwrap() == Mood::LosesReplies {
            std::future::pending::<()>().await;
        }
    }
}

impl CounterStore for Scripted {
    async fn admit(&self, requests: &[AccountRequest]) -> Vec<Result<StoreAnswer, StoreError>> {
        *self.calls.lock().unwrap() += 1;
        if let Err(why) = self.suffer().await {
            return vec![Err(why); requests.len()];
        }
        let mut results = self.inner.admit(requests).await;
        self.lose_reply().await;
        if *self.mood.lock().unwrap() == Mood::FailsForOne {
            for (request, result) in requests.iter().zip(&mut results) {
                if request.account.as_str() == "ill" {
                    *result = Err(StoreError::Failed);
                }
            }
        }
        results
    }

    async fn conclude(&self, conclusions: &[Conclusion]) -> Result<(), StoreError> {
        self.suffer().await?;
        self.inner.conclude(conclusions).await?;
        self.lose_reply().await;
        Ok(())
    }

    async fn look(&self, account: &AccountId, job: &JobRequest) -> Result<Standing, StoreError> {
        self.suffer().await?;
        self.inner.look(account, job).await
    }

    async fn probe(&self) -> Result<(), StoreError> {
        self.suffer().await?;
        self.lose_reply().await;
        Ok(())
    }
}

pub(super) const LIFE: Duration = Duration::from_secs(900);
pub(super) const CLAIM_FOR: Duration = Duration::from_secs(11);

pub(super) struct Rig {
    pub(super) store: Scripted,
    pub(super) meter: Failover<Scripted>,
    pub(super) telemetry: Telemetry,
    next: Mutex<u64>,
}

impl Rig {
    pub(super) fn new(mood: Mood) -> Self {
        Self::with_claims(mood, LIFE)
    }

    /// A life of zero turns claims off.
    pub(super) fn with_claims(mood: Mood, claim_life: Duration) -> Self {
        let store = Scripted::with_claims(mood, claim_life);
        let telemetry = Telemetry::unexported();
        let options = FailoverOptions {
            claim_life,
            ..FailoverOptions::default()
        };
        let clock = Arc::new(StillClock);
        let meter = Failover::new(store.clone(), options, clock, telemetry.clone());
        Self {
            store,
            meter,
            telemetry,
            next: Mutex::new(0),
        }
    }

    fn number(&self) -> u64 {
        let mut next = self.next.lock().unwrap();
        *next += 1;
        *next
    }

    pub(super) fn job(&self, id: &str, lane: Lane) -> JobRequest {
        JobRequest {
            id: JobId::parse(id).unwrap(),
            lane,
            door: Door::Worker,
            try_id: TryId(self.number()),
            claim_for: CLAIM_FOR,
            caps: Vec::new(),
            number: None,
            service: None,
        }
    }

    pub(super) fn jobs(&self, lane: Lane, count: usize) -> Vec<JobRequest> {
        let fresh = |_| self.job(&format!("job-{}", self.number()), lane);
        (0..count).map(fresh).collect()
    }

    pub(super) async fn admit_jobs(&self, jobs: Vec<JobRequest>) -> AccountAnswer {
        let mut answers = self.meter.admit(vec![request("acct", jobs)]).await;
        assert_eq!(answers.len(), 1);
        answers.remove(0)
    }

    /// Offers new jobs of one lane: how many are admitted, and by whose counter.
    pub(super) async fn offer(&self, lane: Lane, count: usize) -> (usize, MeterMode) {
        let answer = self.admit_jobs(self.jobs(lane, count)).await;
        assert_eq!(answer.verdicts.len(), count);
        (admitted(&answer), answer.mode)
    }

    /// One try of one job.
    pub(super) async fn try_job(&self, id: &str) -> (TryId, Verdict) {
        let job = self.job(id, Lane::Transactional);
        let try_id = job.try_id;
        (try_id, self.admit_jobs(vec![job]).await.verdicts.remove(0))
    }

    pub(super) async fn conclude(&self, id: &str, try_id: TryId, result: TryResult) {
        let account = AccountId::parse("acct").unwrap();
        let id = JobId::parse(id).unwrap();
        let conclusion = Conclusion {
            account,
            id,
            try_id,
            result,
            frees: Vec::new(),
        };
        self.meter.conclude(vec![conclusion]).await;
    }

    pub(super) fn fallbacks(&self) -> u64 {
        self.telemetry.counts().fallbacks.sum()
    }

    pub(super) fn fallbacks_because(&self, why: StoreError) -> u64 {
        let counts = &self.telemetry.counts().fallbacks;
        counts.get(0, why as usize) + counts.get(1, why as usize)
    }

    /// As another replica sees a job: through the store alone.
    pub(super) async fn elsewhere(&self, id: &str) -> Verdict {
        self.job_elsewhere(self.job(id, Lane::Transactional)).await
    }

    /// The same, of a job that is not plain.
    pub(super) async fn job_elsewhere(&self, job: JobRequest) -> Verdict {
        let mut results = self.store.inner.admit(&[request("acct", vec![job])]).await;
        results.remove(0).unwrap().verdicts.remove(0)
    }
}

pub(super) fn request(account: &str, jobs: Vec<JobRequest>) -> AccountRequest {
    AccountRequest {
        account: AccountId::parse(account).unwrap(),
        ceilings: Ceilings::of(
            Budget::per_second(100).unwrap(),
            Reserve::percent(20).unwrap(),
        ),
        jobs,
    }
}

pub(super) fn admitted(answer: &AccountAnswer) -> usize {
    let is_admitted = |verdict: &&Verdict| matches!(verdict, Verdict::Admitted { .. });
    answer.verdicts.iter().filter(is_admitted).count()
}

pub(super) fn sent() -> TryResult {
    TryResult::Sent {
        carrier: Arc::from("sandbox"),
        carrier_ref: None,
    }
}

pub(super) const PASSES: Verdict = Verdict::Admitted {
    possible_duplicate: false,
};
pub(super) const MAYBE_TWICE: Verdict = Verdict::Admitted {
    possible_duplicate: true,
};
pub(super) const CLAIMED: Verdict = Verdict::Shed(Limit::Claim);
