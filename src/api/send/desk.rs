//! The desk: takes one message from the gates over the meter to the broker.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::first_answers::FirstAnswers;
use super::rate::Rate;
use crate::accounts::{AccountPolicy, Directory};
use crate::api::gather::Gather;
use crate::api::outbox::AnyOutbox;
use crate::dispatch::job_request;
use crate::dispatch::ports::{
    AccountRequest, CapKey, Clock, Conclusion, Door, Due, Facts, Inquiry, JobRequest, Meter as _,
    PublishError, Records as _, RecordsError, Requeue, Route, TryId, TryResult, WaitReason,
    WaitingJob,
};
use crate::domain::{
    AccountId, Capped, Ceilings, Counter, Job, JobHeaders, Lane, Limit, Outcome, Refusal, Verdict,
    recipient_key,
};
use crate::gates::{Case, TurnedAway, turned_away};
use crate::meter::AnyMeter;
use crate::records::AnyRecords;

/// Questions in one round at most, and rounds at one time.
const LOOK_UPS: (usize, usize) = (256, 4);
const DECISIONS: (usize, usize) = (256, 4);
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
    clock: Arc<dyn Clock>,
    first_answers: FirstAnswers,
    look_ups: Gather<(Arc<Job>, bool), Result<Facts, RecordsError>>,
    decisions: Gather<Asked, Decision>,
    publishes: Gather<Requeue, Result<(), PublishError>>,
}

/// A message was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// It is in a queue.
    Queued,
    /// It is on its way already, or was sent.
    Before,
    /// It waits in the database.
    Waits {
        /// Why.
        reason: WaitReason,
        /// Until when, where that is known.
        until: Option<Timestamp>,
    },
}

/// A message was not accepted.
#[derive(Debug, Clone, PartialEq)]
pub enum No {
    /// Nobody has configured the account, and such accounts are refused.
    UnknownAccount,
    /// The account is paused.
    AccountPaused,
    /// A gate says never.
    Refused {
        /// How it would have ended.
        outcome: Outcome,
        /// What exactly was wrong.
        detail: Option<Cow<'static, str>>,
        /// When the recipient's next message may pass.
        next_allowed_at: Option<Timestamp>,
    },
    /// A frequency cap is used up.
    Capped {
        /// Which.
        capped: Capped,
        /// How many messages it allows.
        limit: u32,
        /// Within which time.
        window: Duration,
        /// When that was found, by the meter's clock.
        at_ms: u64,
    },
    /// A ceiling is reached.
    Shed {
        /// Which.
        limit: Limit,
        /// How far it goes, in messages per second.
        per_second: u32,
    },
    /// The database gives no answer. Nothing was queued.
    Unrecorded(RecordsError),
    /// The broker took nothing. Nothing was queued.
    NotPublished(PublishError),
    /// The broker has not said whether it took the message.
    Unknown,
}

/// What became of a message, and the lane's ceiling, where it was looked at.
pub type Settled = (Result<Taken, No>, Option<Rate>);

/// A question to the meter: about a job, or only about the counter.
struct Asked {
    account: AccountId,
    ceilings: Ceilings,
    job: Option<JobRequest>,
}

/// Its answer.
#[derive(Debug, Clone)]
struct Decision {
    verdict: Option<Verdict>,
    counter: Counter,
    at_ms: u64,
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
            async move { look_up(&records, &jobs).await }
        });
        let deciding = Arc::clone(&meter);
        let decisions = Gather::new(DECISIONS.0, DECISIONS.1, move |asked| {
            let meter = Arc::clone(&deciding);
            async move { decide(&meter, asked).await }
        });
        let publishes = Gather::new(PUBLISHES.0, PUBLISHES.1, move |jobs| {
            let outbox = Arc::clone(&outbox);
            async move { outbox.publish(jobs).await }
        });
        Self {
            directory,
            records,
            meter,
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

    /// Takes a message as far as it goes. `may_be_known`: its id may have been used before.
    ///
    /// Once begun it must not be dropped half-way: a message that was admitted would be counted and
    /// not queued.
    pub async fn send(&self, job: Arc<Job>, may_be_known: bool) -> Settled {
        if !self.directory.is_loaded() {
            // Until then it knows the policies of nobody.
            return (Err(No::Unrecorded(RecordsError::Unreachable)), None);
        }
        let Some(policy) = self.directory.policy(&job.head.account) else {
            return (Err(No::UnknownAccount), None);
        };
        match self.pass_gates(&job, &policy, may_be_known).await {
            Ok(None) => self.meter_and_queue(&job, &policy).await,
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
        let decision = self.decisions.ask(asked).await?;
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
        let facts = self.look_ups.ask((Arc::clone(job), may_be_known)).await;
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
        kept.map_err(No::Unrecorded)?;
        Ok(Taken::Waits { reason, until })
    }

    async fn meter_and_queue(&self, job: &Arc<Job>, policy: &AccountPolicy) -> Settled {
        let try_id = TryId(fastrand::u64(..));
        let request = job_request(job, policy, Door::Api, try_id, Duration::ZERO);
        let asked = Asked {
            account: job.head.account.clone(),
            ceilings: policy.ceilings,
            job: Some(request.clone()),
        };
        let Some(decision) = self.decisions.ask(asked).await else {
            return (Err(No::Unknown), None);
        };
        let rate = Some(decision.rate(job.lane(), policy));
        let done = match decision.verdict {
            Some(Verdict::Admitted { .. }) => {
                let queued = self.queue(job, decision.at_ms).await;
                if let Err(No::NotPublished(_)) = queued {
                    self.give_up(job, try_id, &request).await;
                }
                queued
            }
            Some(Verdict::AdmittedBefore { at_ms }) => self.queue(job, at_ms).await,
            Some(Verdict::Duplicate(_) | Verdict::Shed(Limit::Claim)) => Ok(Taken::Before),
            Some(Verdict::Capped(capped)) => Err(capped_by(&request, capped, decision.at_ms)),
            Some(Verdict::Shed(limit)) => Err(shed_by(limit, job.lane(), policy, &request)),
            None => Err(No::Unknown),
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
        match self.publishes.ask(requeue).await {
            Some(Ok(())) => Ok(Taken::Queued),
            Some(Err(error)) if is_certain(&error) => Err(No::NotPublished(error)),
            Some(Err(_)) | None => Err(No::Unknown),
        }
    }

    /// It was admitted, and is surely in no queue: the next try with its id is a first one.
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

impl Decision {
    fn rate(&self, lane: Lane, policy: &AccountPolicy) -> Rate {
        let limit = policy.ceilings.of_lane(lane);
        Rate::of(lane, limit, self.counter, self.at_ms)
    }
}

/// Whether the broker surely has not stored the message.
const fn is_certain(error: &PublishError) -> bool {
    match error {
        PublishError::Disconnected | PublishError::Returned { .. } | PublishError::Refused => true,
        PublishError::TimedOut | PublishError::Broken(_) => false,
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

async fn look_up(
    records: &AnyRecords,
    jobs: &[(Arc<Job>, bool)],
) -> Vec<Result<Facts, RecordsError>> {
    let inquiries: Vec<_> = jobs
        .iter()
        .map(|(job, may_be_known)| Inquiry {
            account: &job.head.account,
            id: &job.head.id,
            channel: job.channel,
            recipient: recipient_key(job.channel, &job.to),
            campaign: job.head.campaign_id.as_deref(),
            journey: job.head.journey_id.as_deref(),
            batch: job.head.batch_id.as_deref(),
            maybe_sent: *may_be_known,
            // The first send may be from any day.
            enqueued_ms: None,
        })
        .collect();
    let one_by_one = inquiries.len() > 1;
    match records.facts(&inquiries).await {
        Ok(facts) => facts.into_iter().map(Ok).collect(),
        // One that cannot be asked about must not take the others down with it.
        Err(error) if error.may_be_the_questions() && one_by_one => {
            let mut answers = Vec::with_capacity(inquiries.len());
            for inquiry in inquiries {
                let facts = records.facts(&[inquiry]).await;
                answers.push(facts.map(|facts| facts.into_iter().next().unwrap_or_default()));
            }
            answers
        }
        Err(error) => vec![Err(error); inquiries.len()],
    }
}

/// Asks about each account once, and tells each who asked.
async fn decide(meter: &AnyMeter, asked: Vec<Asked>) -> Vec<Decision> {
    let mut places: HashMap<AccountId, usize> = HashMap::new();
    let mut requests: Vec<AccountRequest> = Vec::new();
    let mut jobs = Vec::with_capacity(asked.len());
    for Asked {
        account,
        ceilings,
        job,
    } in asked
    {
        let place = *places.entry(account.clone()).or_insert_with(|| {
            requests.push(AccountRequest {
                account,
                ceilings,
                jobs: Vec::new(),
            });
            requests.len() - 1
        });
        let number = job.map(|job| {
            requests[place].jobs.push(job);
            requests[place].jobs.len() - 1
        });
        jobs.push((place, number));
    }
    let answers = meter.admit(requests).await;
    let decision = |(place, number): (usize, Option<usize>)| {
        let answer = answers.get(place)?;
        let verdict = number.and_then(|number| answer.verdicts.get(number).cloned());
        Some(Decision {
            verdict,
            counter: answer.counter,
            at_ms: answer.at_ms,
        })
    };
    jobs.into_iter().filter_map(decision).collect()
}

/// How a refusal is told in words.
#[must_use]
pub(super) const fn refusal_of(outcome: Outcome) -> Option<Refusal> {
    match outcome {
        Outcome::Refused(refusal) => Some(refusal),
        _ => None,
    }
}
