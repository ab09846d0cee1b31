//! The records in memory.

mod batches;
mod ends;
mod held;
mod holds;
mod opt_outs;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use crate::accounts::keys::KeyId;
use crate::accounts::tables::holds::{HoldRecord, HoldTarget, Lifted};
use crate::accounts::tables::suppressions::{OptOut, Suppression};
use crate::accounts::{HoldKind, hold_name};
use crate::dispatch::ports::{
    Clock, Due, Ended, Facts, Gap, Hold, Inquiry, Records, RecordsError, Requeue, Route, WaitingJob,
};
use crate::domain::{AccountId, JobId, Outcome, Scope, SentRecord};
use crate::ledger::{self, Page, Place, Wanted};
use ends::Ends;
use holds::Holds;
use opt_outs::OptOuts;

#[derive(Debug)]
struct Waiting {
    job: WaitingJob,
    since: Timestamp,
    /// When it is due, or `None` while it waits for something to be resumed.
    due: Option<Timestamp>,
}

#[derive(Debug, Default)]
struct Kept {
    opt_outs: OptOuts,
    holds: Holds,
    waiting: Vec<Waiting>,
    ends: Ends,
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
        let opt_out = OptOut {
            recipient: recipient.to_owned(),
            scope: Scope::All,
            source: None,
        };
        self.add_opt_out(account, opt_out);
    }

    /// Writes an opt-out down, and says whether it is new. One that was there stays as it is.
    pub(crate) fn add_opt_out(&self, account: &AccountId, opt_out: OptOut) -> bool {
        let now = self.clock.now();
        self.kept().opt_outs.add(account, opt_out, now)
    }

    /// Removes a recipient's opt-outs, of one scope or of all, and says how many there were.
    pub(crate) fn remove_opt_outs(
        &self,
        account: &AccountId,
        recipient: &str,
        scope: Option<Scope>,
    ) -> u64 {
        self.kept().opt_outs.remove(account, recipient, scope)
    }

    /// A recipient's opt-outs.
    #[must_use]
    pub fn opt_outs_of(&self, account: &AccountId, recipient: &str) -> Vec<Suppression> {
        self.kept().opt_outs.of_recipient(account, recipient)
    }

    /// At most `count` opt-outs, in the order of recipients and scopes, behind a recipient and scope.
    #[must_use]
    pub fn opt_out_page(
        &self,
        account: &AccountId,
        scope: Option<Scope>,
        after: Option<(&str, &str)>,
        count: u16,
    ) -> Vec<Suppression> {
        self.kept().opt_outs.page(account, scope, after, count)
    }

    /// Pauses or cancels something, or with `None` lets it go on, as an operator does.
    pub fn hold(&self, account: &AccountId, kind: HoldKind, id: &str, hold: Option<Hold>) {
        let on = HoldTarget {
            account: account.clone(),
            kind,
            target: id.to_owned(),
        };
        match hold {
            Some(hold) => drop(self.put_hold(&on, hold, None, None)),
            None => drop(self.lift_hold(&on, Hold::Cancelled, None)),
        }
    }

    /// Pauses or cancels something, and says which hold it had before; by the rules of
    /// [`put`](crate::accounts::tables::holds::put).
    pub(crate) fn put_hold(
        &self,
        on: &HoldTarget,
        hold: Hold,
        reason: Option<&str>,
        by: Option<KeyId>,
    ) -> Option<Hold> {
        let now = self.clock.now();
        self.kept().holds.put(on, hold, reason, by, now)
    }

    /// Lifts a hold, by the rules of [`lift`](crate::accounts::tables::holds::lift).
    pub(crate) fn lift_hold(&self, on: &HoldTarget, gravest: Hold, by: Option<KeyId>) -> Lifted {
        self.kept().holds.lift(on, gravest, by)
    }

    /// A hold.
    #[must_use]
    pub fn find_hold(&self, on: &HoldTarget) -> Option<HoldRecord> {
        self.kept().holds.find(on)
    }

    /// At most `count` holds of an account, in the order of kinds and targets.
    #[must_use]
    pub fn hold_page(
        &self,
        account: &AccountId,
        after: Option<(HoldKind, &str)>,
        count: u16,
    ) -> Vec<HoldRecord> {
        self.kept().holds.page(account, after, count)
    }

    /// Takes the jobs that are due, as messages for their lanes' queues. What is cancelled is due at
    /// once.
    #[must_use]
    pub fn take_due(&self) -> Vec<Requeue> {
        let now = self.clock.now();
        let mut kept = self.kept();
        let waiting = std::mem::take(&mut kept.waiting);
        let (due, left) = waiting.into_iter().partition(|row| {
            let hold = kept.hold_on(&row.job);
            hold == Some(Hold::Cancelled)
                || row.due.map_or_else(|| hold.is_none(), |due| due <= now)
        });
        kept.waiting = left;
        due.into_iter().map(|row| released(row.job)).collect()
    }

    /// The jobs of that id that wait.
    #[must_use]
    pub fn waiting_jobs(&self, account: &AccountId, id: &JobId) -> Vec<ledger::Waiting> {
        let kept = self.kept();
        let rows = kept.waiting.iter();
        let rows = rows.filter(|row| row.job.account == *account && row.job.id == *id);
        rows.map(|row| kept.as_ledger_shows(row)).collect()
    }

    /// Jobs that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.kept().waiting.len()
    }

    /// How a job ended.
    #[must_use]
    pub fn entry(&self, account: &AccountId, id: &JobId) -> Option<Ended> {
        self.kept().ends.get(account, id).cloned()
    }

    /// The same as the ledger would have it.
    #[must_use]
    pub fn ledger_entry(&self, account: &AccountId, id: &JobId) -> Option<ledger::Entry> {
        self.kept().ends.get(account, id).map(ends::entry_of)
    }

    /// As [`page`](crate::ledger::page).
    #[must_use]
    pub fn ledger_page(
        &self,
        account: &AccountId,
        wanted: Wanted<'_>,
        behind: Option<&Place>,
        count: u16,
    ) -> Page {
        self.kept().ends.page(account, wanted, behind, count)
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
    fn hold_on(&self, job: &WaitingJob) -> Option<Hold> {
        let belongs = [&job.campaign, &job.journey, &job.batch].map(Option::as_deref);
        self.holds.gravest(&job.account, belongs)
    }

    fn as_ledger_shows(&self, row: &Waiting) -> ledger::Waiting {
        let Waiting { job, since, due } = row;
        let own = job.account.as_str();
        let on = [
            (HoldKind::Account, Some(own)),
            (HoldKind::Campaign, job.campaign.as_deref()),
            (HoldKind::Journey, job.journey.as_deref()),
            (HoldKind::Batch, job.batch.as_deref()),
        ];
        let holds = on.into_iter().filter_map(|(kind, target)| {
            let on = HoldTarget {
                account: job.account.clone(),
                kind,
                target: target?.to_owned(),
            };
            let held = self.holds.find(&on)?;
            Some(format!(
                "{} {}: {}",
                kind.as_str(),
                on.target,
                hold_name(held.hold)
            ))
        });
        let text = |text: &Option<Box<str>>| text.as_deref().map(str::to_owned);
        ledger::Waiting {
            account_id: own.to_owned(),
            lane: job.lane.as_str().to_owned(),
            reason: job.reason.as_str().to_owned(),
            due_ms: due.map(Timestamp::as_millisecond),
            since_ms: since.as_millisecond(),
            attempts: i32::try_from(job.headers.attempts).unwrap_or(i32::MAX),
            sheds: i32::try_from(job.headers.sheds).unwrap_or(i32::MAX),
            campaign_id: text(&job.campaign),
            journey_id: text(&job.journey),
            batch_id: text(&job.batch),
            job: job.payload.as_bytes().to_vec(),
            holds: holds.collect(),
        }
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
            let sent = kept.ends.get(one.account, one.id);
            let sent = sent.filter(|ended| one.maybe_sent && ended.outcome == Outcome::Dispatched);
            let belongs = [one.campaign, one.journey, one.batch];
            Facts {
                opted_out: kept
                    .opt_outs
                    .include(one.account, &one.recipient, one.channel),
                hold: kept.holds.gravest(one.account, belongs),
                account_paused: kept.holds.gravest(one.account, [None; 3]) == Some(Hold::Paused),
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
            since: now,
            job: job.clone(),
        });
        self.kept().waiting.extend(waiting);
        Ok(())
    }

    async fn write(&self, ended: &[Ended]) -> Result<(), RecordsError> {
        let mut kept = self.kept();
        for one in ended {
            kept.ends.write(one);
        }
        Ok(())
    }

    async fn note_gaps(&self, gaps: &[Gap]) -> Result<(), RecordsError> {
        let mut kept = self.kept();
        for gap in gaps {
            kept.ends.note_gap(gap.ended_at);
        }
        Ok(())
    }

    async fn probe(&self) -> Result<(), RecordsError> {
        Ok(())
    }
}
