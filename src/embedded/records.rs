//! Records without a database: none at all, or in memory.

mod held;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use crate::dispatch::ports::{
    Clock, Due, Ended, Facts, Hold, Inquiry, Records, RecordsError, Requeue, Route, WaitingJob,
};
use crate::domain::{AccountId, JobId, Outcome, SentRecord};

/// No database.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoRecords;

impl Records for NoRecords {
    fn exist(&self) -> bool {
        false
    }

    async fn facts(&self, inquiries: &[Inquiry<'_>]) -> Result<Vec<Facts>, RecordsError> {
        Ok(inquiries.iter().map(|_| Facts::default()).collect())
    }

    async fn keep(&self, jobs: &[WaitingJob]) -> Result<(), RecordsError> {
        if jobs.is_empty() {
            Ok(())
        } else {
            Err(RecordsError::Unreachable)
        }
    }

    async fn write(&self, _: &[Ended]) -> Result<(), RecordsError> {
        Ok(())
    }

    async fn probe(&self) -> Result<(), RecordsError> {
        Ok(())
    }
}

/// What a job belongs to: the kind (`account`, `campaign`, `journey`, `batch`) and its id.
type Scope = (AccountId, &'static str, String);

#[derive(Debug)]
struct Waiting {
    job: WaitingJob,
    /// When it is due, or `None` while it waits for something to be resumed.
    due: Option<Timestamp>,
}

#[derive(Debug, Default)]
struct Kept {
    opted_out: HashSet<(AccountId, String)>,
    holds: HashMap<Scope, Hold>,
    waiting: Vec<Waiting>,
    ledger: HashMap<(AccountId, JobId), Ended>,
}

/// Records in memory; clones are the same records.
#[derive(Clone)]
pub struct MemoryRecords {
    kept: Arc<Mutex<Kept>>,
    clock: Arc<dyn Clock>,
}

impl MemoryRecords {
    /// Empty records.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            kept: Arc::default(),
            clock,
        }
    }

    /// A recipient, in the form in which opt-outs are kept, opts out of every channel.
    pub fn opt_out(&self, account: &AccountId, recipient: &str) {
        let key = (account.clone(), recipient.to_owned());
        self.kept().opted_out.insert(key);
    }

    /// Pauses or cancels something, or with `None` lets it go on.
    pub fn hold(&self, account: &AccountId, kind: &'static str, id: &str, hold: Option<Hold>) {
        let scope = (account.clone(), kind, id.to_owned());
        let mut kept = self.kept();
        match hold {
            Some(hold) => kept.holds.insert(scope, hold),
            None => kept.holds.remove(&scope),
        };
    }

    /// Takes the jobs that are due, as messages for their lanes' queues.
    #[must_use]
    pub fn take_due(&self) -> Vec<Requeue> {
        let now = self.clock.now();
        let mut kept = self.kept();
        let waiting = std::mem::take(&mut kept.waiting);
        let (due, left) = waiting.into_iter().partition(|row| {
            row.due
                .map_or_else(|| !kept.keeps(&row.job), |due| due <= now)
        });
        kept.waiting = left;
        due.into_iter().map(|row| released(row.job)).collect()
    }

    /// Jobs that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.kept().waiting.len()
    }

    /// How a job ended.
    #[must_use]
    pub fn entry(&self, account: &AccountId, id: &JobId) -> Option<Ended> {
        let key = (account.clone(), id.clone());
        self.kept().ledger.get(&key).cloned()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for MemoryRecords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryRecords").finish_non_exhaustive()
    }
}

impl Kept {
    fn hold_on(
        &self,
        account: &AccountId,
        [campaign, journey, batch]: [Option<&str>; 3],
    ) -> Option<Hold> {
        let scopes = [
            ("account", Some(account.as_str())),
            ("campaign", campaign),
            ("journey", journey),
            ("batch", batch),
        ];
        let holds = scopes.into_iter().filter_map(|(kind, id)| {
            let scope = (account.clone(), kind, id?.to_owned());
            self.holds.get(&scope).copied()
        });
        holds.max()
    }

    /// Whether a paused job is still paused.
    fn keeps(&self, job: &WaitingJob) -> bool {
        let scopes = [&job.campaign, &job.journey, &job.batch].map(Option::as_deref);
        self.hold_on(&job.account, scopes) == Some(Hold::Paused)
    }
}

fn released(job: WaitingJob) -> Requeue {
    Requeue {
        id: job.id,
        account: job.account,
        lane: job.lane,
        route: Route::Queue,
        headers: job.headers,
        payload: job.payload,
    }
}

impl Records for MemoryRecords {
    fn exist(&self) -> bool {
        true
    }

    async fn facts(&self, inquiries: &[Inquiry<'_>]) -> Result<Vec<Facts>, RecordsError> {
        let kept = self.kept();
        let facts = |one: &Inquiry<'_>| {
            let recipient = (one.account.clone(), one.recipient.to_string());
            let sent = kept.ledger.get(&(one.account.clone(), one.id.clone()));
            let sent = sent.filter(|ended| one.maybe_sent && ended.outcome == Outcome::Dispatched);
            Facts {
                opted_out: kept.opted_out.contains(&recipient),
                hold: kept.hold_on(one.account, [one.campaign, one.journey, one.batch]),
                account_paused: kept.hold_on(one.account, [None; 3]) == Some(Hold::Paused),
                sent: sent.map(|ended| SentRecord {
                    at_ms: u64::try_from(ended.settled_at.as_millisecond()).unwrap_or(0),
                    carrier: ended.carrier.clone().unwrap_or_default(),
                    carrier_ref: ended.carrier_ref.clone(),
                }),
            }
        };
        Ok(inquiries.iter().map(facts).collect())
    }

    async fn keep(&self, jobs: &[WaitingJob]) -> Result<(), RecordsError> {
        let now = self.clock.now();
        let waiting = jobs.iter().map(|job| Waiting {
            due: match &job.due {
                Due::At(due) => Some(*due),
                Due::Resumed => None,
                Due::InTurn(_) => Some(now + Duration::from_secs(1)),
            },
            job: job.clone(),
        });
        self.kept().waiting.extend(waiting);
        Ok(())
    }

    async fn write(&self, ended: &[Ended]) -> Result<(), RecordsError> {
        let mut kept = self.kept();
        for one in ended {
            let key = (one.head.account.clone(), one.head.id.clone());
            let known = kept.ledger.get(&key).map(|known| known.outcome);
            let replaces = known.is_none_or(|known| known != Outcome::Dispatched)
                && one.outcome == Outcome::Dispatched;
            if known.is_none() || replaces {
                kept.ledger.insert(key, one.clone());
            }
        }
        Ok(())
    }

    async fn probe(&self) -> Result<(), RecordsError> {
        Ok(())
    }
}
