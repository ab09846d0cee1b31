//! The desk: takes one message from the gates over the meter to the broker.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::first_answers::FirstAnswers;
use super::rate::Rate;
use super::rounds::{Asked, Decision, decide, look_up};
use super::settled::{Came, No, Settled, Taken};
use crate::accounts::{AccountPolicy, Directory};
use crate::api::gather::Gather;
use crate::api::outbox::AnyOutbox;
use crate::dispatch::job_request;
use crate::dispatch::ports::{
    CapKey, Clock, Conclusion, Door, Due, Facts, JobRequest, Meter as _, PublishError,
    Records as _, RecordsError, Requeue, Route, TryId, TryResult, WaitReason, WaitingJob,
};
use crate::domain::{Capped, Job, JobHeaders, Lane, Limit, Verdict};
use crate::gates::{Case, TurnedAway, turned_away};
use crate::meter::AnyMeter;
use crate::records::AnyRecords;

/// Questions in one round at most, and rounds at one time.
const LOOK_UPS: (usize, usize) = (256, 4);
const DECISIONS: (usize, usize) = (256, 4);
/// Of each lane.
const PUBLISHES: (usize, usize) = (256, 8);

/// What the desk works with.
pub struct DeskParts {
    /// What operators have laid down for accounts.
    pub directory: Arc<Directory>,
    /// Opt-outs, holds, jobs that wait, the ledger.
    pub records: Arc<AnyRecords>,
    /// The budgets' keeper.
    pub meter: Arc<AnyMeter>,
    /// Where accepted jobs go.
    pub outbox: Arc<AnyOutbox>,
    /// The clock of this process.
    pub clock: Arc<dyn Clock>,
    /// What requests with a key were answered first.
    pub first_answers: FirstAnswers,
}

/// Sends single messages; what many requests ask at one time is asked together.
pub struct Desk {
    directory: Arc<Directory>,
    records: Arc<AnyRecords>,
    meter: Arc<AnyMeter>,
    outbox: Arc<AnyOutbox>,
    clock: Arc<dyn Clock>,
    first_answers: FirstAnswers,
    look_ups: Gather<(Arc<Job>, bool), Result<Facts, RecordsError>>,
    decisions: Gather<Asked, Option<Decision>>,
    /// Of each lane: a lane whose queue confirms nothing holds up no other.
    publishes: [Gather<Requeue, Result<(), PublishError>>; 2],
}

impl Desk {
    /// A desk. Must be called within a runtime.
    #[must_use]
    pub fn new(parts: DeskParts) -> Self {
        let DeskParts {
            directory,
            records,
            meter,
            outbox,
            clock,
            first_answers,
        } = parts;
        let asked = Arc::clone(&records);
        let look_ups = Gather::new(LOOK_UPS.0, LOOK_UPS.1, move |jobs| {
            let records = Arc::clone(&asked);
            async move { look_up(&*records, &jobs).await }
        });
        let deciding = Arc::clone(&meter);
        let decisions = Gather::new(DECISIONS.0, DECISIONS.1, move |asked| {
            let meter = Arc::clone(&deciding);
            async move { decide(&*meter, asked).await }
        });
        let publishes = Lane::ALL.map(|_| {
            let outbox = Arc::clone(&outbox);
            Gather::new(PUBLISHES.0, PUBLISHES.1, move |jobs| {
                let outbox = Arc::clone(&outbox);
                async move { outbox.publish(jobs).await }
            })
        });
        Self {
            directory,
            records,
            meter,
            outbox,
            clock,
            first_answers,
            look_ups,
            decisions,
            publishes,
        }
    }

    /// What requests with a key were answered first.
    #[must_use]
    pub const fn first_answers(&self) -> &FirstAnswers {
        &self.first_answers
    }

    /// Takes a message as far as it goes.
    ///
    /// Once begun it must not be dropped half-way: a message that was admitted would be counted and
    /// not queued.
    pub async fn send(&self, job: Arc<Job>, came: Came) -> Settled {
        if !self.directory.is_loaded() {
            // Until then it knows the policies of nobody.
            return (Err(No::Unrecorded(RecordsError::Unreachable)), None);
        }
        let Some(policy) = self.directory.policy(&job.head.account) else {
            return (Err(No::UnknownAccount), None);
        };
        match self.pass_gates(&job, &policy, came.may_be_known()).await {
            Ok(None) => self.meter_and_queue(&job, &policy, came).await,
            Ok(Some(taken)) => (Ok(taken), self.rate(&job, &policy).await),
            Err(no) => (Err(no), self.rate(&job, &policy).await),
        }
    }

    /// The lane's ceiling as it is now; nothing is counted.
    pub async fn rate(&self, job: &Job, policy: &AccountPolicy) -> Option<Rate> {
        let asked = Asked {
            account: job.head.account.clone(),
            ceilings: policy.ceilings,
            job: None,
        };
        let decision = self.decisions.ask(asked).await.flatten()?;
        Some(decision.rate(job.lane(), policy))
    }

    /// The same without a policy at hand.
    pub async fn rate_of(&self, job: &Job) -> Option<Rate> {
        let policy = self.directory.policy(&job.head.account)?;
        self.rate(job, &policy).await
    }

    /// What the gates say; `None` lets it go on to the meter.
    async fn pass_gates(
        &self,
        job: &Arc<Job>,
        policy: &AccountPolicy,
        may_be_known: bool,
    ) -> Result<Option<Taken>, No> {
        let question = (Arc::clone(job), may_be_known);
        let facts = self.look_ups.ask(question).await;
        let facts = facts.unwrap_or(Err(RecordsError::Failed));
        let facts = facts.map_err(No::Unrecorded)?;
        let case = Case {
            job,
            policy,
            facts: Some(&facts),
            now: self.clock.now(),
        };
        let Some((_, turned_away)) = turned_away(case) else {
            return Ok(None);
        };
        match turned_away {
            TurnedAway::Sent(_) => Ok(Some(Taken::Before)),
            TurnedAway::Ended {
                outcome,
                detail,
                next_allowed_at,
            } => Err(No::Refused {
                outcome,
                detail,
                next_allowed_at,
            }),
            TurnedAway::Waits(WaitReason::Paused, _) if facts.account_paused => {
                Err(No::AccountPaused)
            }
            TurnedAway::Waits(reason, due) => self.keep(job, reason, due).await.map(Some),
        }
    }

    async fn keep(&self, job: &Job, reason: WaitReason, due: Due) -> Result<Taken, No> {
        let until = match due {
            Due::At(at) => Some(at),
            Due::Resumed | Due::InTurn(_) => None,
        };
        let head = &job.head;
        let waiting = WaitingJob {
            id: head.id.clone(),
            account: head.account.clone(),
            lane: job.lane(),
            reason,
            due,
            campaign: head.campaign_id.clone(),
            journey: head.journey_id.clone(),
            batch: head.batch_id.clone(),
            headers: headers(job, None),
            payload: job.payload.clone(),
        };
        let kept = self.records.keep(&[waiting]).await;
        kept.map_err(No::not_kept)?;
        Ok(Taken::Waits { reason, until })
    }

    async fn meter_and_queue(&self, job: &Arc<Job>, policy: &AccountPolicy, came: Came) -> Settled {
        // What could not be queued should not be counted first.
        if let Err(error) = self.outbox.takes_admitted(job.lane()) {
            let no = No::NotPublished(error).unless_it_came_before(came);
            return (Err(no), self.rate(job, policy).await);
        }
        let try_id = TryId(fastrand::u64(..));
        let request = job_request(job, policy, Door::Api, try_id, Duration::ZERO);
        let asked = Asked {
            account: job.head.account.clone(),
            ceilings: policy.ceilings,
            job: Some(request.clone()),
        };
        let Some(decision) = self.decisions.ask(asked).await.flatten() else {
            return (Err(No::Unmetered.unless_it_came_before(came)), None);
        };
        let rate = Some(decision.rate(job.lane(), policy));
        let done = match decision.verdict {
            Some(Verdict::Admitted { .. }) => {
                let queued = self.queue(job, decision.at_ms).await;
                if let (Err(No::NotPublished(_)), Came::Once) = (&queued, came) {
                    self.give_up(job, try_id, &request).await;
                }
                queued.map_err(|no| no.unless_it_came_before(came))
            }
            // Whoever admitted it may have queued it, whatever becomes of it here.
            Some(Verdict::AdmittedBefore { at_ms }) => {
                let queued = self.queue(job, at_ms).await;
                queued.map_err(|no| no.unless_it_came_before(Came::Again))
            }
            // A worker has, or had, it in hand: it was in a queue.
            Some(Verdict::Duplicate(_) | Verdict::Shed(Limit::Claim)) => Ok(Taken::Before),
            Some(Verdict::Capped(capped)) => Err(capped_by(&request, capped, decision.at_ms)),
            Some(Verdict::Shed(limit)) => Err(shed_by(limit, job.lane(), policy, &request)),
            None => Err(No::Unmetered.unless_it_came_before(came)),
        };
        (done, rate)
    }

    async fn queue(&self, job: &Job, at_ms: u64) -> Result<Taken, No> {
        let requeue = Requeue {
            id: job.head.id.clone(),
            account: job.head.account.clone(),
            lane: job.lane(),
            route: Route::Admitted,
            headers: headers(job, Some(at_ms)),
            payload: job.payload.clone(),
        };
        let publishes = &self.publishes[job.lane().index()];
        match publishes.ask(requeue).await {
            Some(Ok(())) => Ok(Taken::Queued),
            Some(Err(error)) if error.is_certain() => Err(No::NotPublished(error)),
            Some(Err(_)) | None => Err(No::Unknown),
        }
    }

    /// It was admitted, is surely in no queue, and nobody will ask for its id again: it gives up its
    /// places in frequency caps.
    ///
    /// Not so a message with a key. Its claim stays, so that another request with the key queues it
    /// without being counted: then its places have to stay too, or it would pass by its caps.
    async fn give_up(&self, job: &Job, try_id: TryId, request: &JobRequest) {
        let frees = request.caps.iter();
        let frees: Vec<CapKey> = frees.map(|cap| cap.key.clone()).collect();
        let conclusion = Conclusion {
            account: job.head.account.clone(),
            id: job.head.id.clone(),
            try_id,
            result: TryResult::NotSent,
            frees,
        };
        self.meter.conclude(vec![conclusion]).await;
    }
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desk").finish_non_exhaustive()
    }
}

fn headers(job: &Job, admitted_ms: Option<u64>) -> JobHeaders {
    let enqueued = job.head.enqueued_at.map(Timestamp::as_millisecond);
    JobHeaders {
        enqueued_ms: enqueued.and_then(|at| u64::try_from(at).ok()),
        admitted_ms,
        ..JobHeaders::default()
    }
}

fn capped_by(request: &JobRequest, capped: Capped, at_ms: u64) -> No {
    let cap = request.caps.iter().find(|cap| cap.key.cap == capped.cap);
    No::Capped {
        limit: cap.map_or(0, |cap| cap.limit),
        window: cap.map_or(Duration::ZERO, |cap| cap.window),
        capped,
        at_ms,
    }
}

fn shed_by(limit: Limit, lane: Lane, policy: &AccountPolicy, request: &JobRequest) -> No {
    let target = match limit {
        Limit::Number => request.number.as_ref(),
        Limit::Service => request.service.as_ref(),
        Limit::Lane | Limit::Claim => None,
    };
    let lane = policy.ceilings.of_lane(lane);
    No::Shed {
        limit,
        per_second: target.map_or(lane, |target| target.per_second),
    }
}

#[cfg(test)]
#[path = "desk_tests.rs"]
mod tests;
