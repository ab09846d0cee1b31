//! Claims kept in this process: which jobs are being tried, and which have been sent.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::expiring::Expiring;
use super::standing::ClaimNow;
use crate::dispatch::ports::{Conclusion, Door, JobRequest, TryId, TryResult};
use crate::domain::{AccountId, JobId, Limit, SentRecord, Verdict};

/// One instant on both clocks: the steady one that durations are measured by, and the wall clock
/// that goes into records.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// By the steady clock.
    pub instant: Instant,
    /// By the wall clock.
    pub wall: Timestamp,
}

impl Moment {
    /// The wall clock, in milliseconds since the Unix epoch.
    pub(super) fn wall_ms(self) -> u64 {
        u64::try_from(self.wall.as_millisecond()).unwrap_or(0)
    }
}

/// How a job stands in the book.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing<'a> {
    /// Nothing is known of it.
    Free,
    /// An API server has admitted it, at that time in milliseconds since the Unix epoch.
    Admitted(u64),
    /// A try is under way.
    InProgress,
    /// A try was under way, and its time is over without a known result.
    Unfinished,
    /// A carrier has taken it.
    Sent(&'a SentRecord),
}

impl Standing<'_> {
    /// What keeps a job from being asked about any further, if something does. To an API server
    /// any claim says that the job is on its way already.
    pub(super) fn verdict(self, door: Door) -> Option<Verdict> {
        match (self, door) {
            (Self::Sent(record), _) => Some(Verdict::Duplicate(record.clone())),
            (Self::Admitted(at_ms), Door::Api) => Some(Verdict::AdmittedBefore { at_ms }),
            (Self::InProgress, _) | (Self::Unfinished, Door::Api) => {
                Some(Verdict::Shed(Limit::Claim))
            }
            (Self::Free | Self::Admitted(_) | Self::Unfinished, _) => None,
        }
    }
}

impl From<Standing<'_>> for ClaimNow {
    fn from(standing: Standing<'_>) -> Self {
        match standing {
            Standing::Free => Self::Free,
            Standing::Admitted(at_ms) => Self::Admitted { at_ms },
            Standing::InProgress => Self::UnderWay,
            Standing::Unfinished => Self::Unfinished,
            Standing::Sent(record) => Self::Sent(record.clone()),
        }
    }
}

#[derive(Debug)]
enum State {
    Admitted { at_ms: u64 },
    Sending { try_id: TryId, deadline: Instant },
    Sent(SentRecord),
}

type Key = (AccountId, JobId);

/// Claims in memory. They expire, and beyond a bound the ones next to expire give way.
#[derive(Debug)]
pub(super) struct ClaimBook {
    life: Duration,
    claims: Expiring<Key, State>,
}

impl ClaimBook {
    /// A book that keeps each claim for `life` after its try's deadline, and at most `bound` of
    /// them. A life of zero keeps none.
    pub(super) fn new(life: Duration, bound: usize) -> Self {
        Self {
            life,
            claims: Expiring::new(if life.is_zero() { 0 } else { bound }),
        }
    }

    /// How a job stands at `now`.
    pub(super) fn standing(&self, account: &AccountId, id: &JobId, now: Instant) -> Standing<'_> {
        if self.claims.is_empty() {
            return Standing::Free;
        }
        match self.claims.get(&(account.clone(), id.clone()), now) {
            None => Standing::Free,
            Some(State::Sent(record)) => Standing::Sent(record),
            Some(State::Admitted { at_ms }) => Standing::Admitted(*at_ms),
            Some(State::Sending { deadline, .. }) if *deadline > now => Standing::InProgress,
            Some(State::Sending { .. }) => Standing::Unfinished,
        }
    }

    /// Notes that a job was admitted, at that time in milliseconds since the Unix epoch: to be
    /// queued, or to be sent.
    pub(super) fn enter(
        &mut self,
        account: &AccountId,
        job: &JobRequest,
        at_ms: u64,
        now: Instant,
    ) {
        if job.door == Door::Api {
            let key = (account.clone(), job.id.clone());
            let admitted = State::Admitted { at_ms };
            self.claims.put(key, admitted, now + self.life, now);
        } else {
            self.claim(account, &job.id, job.try_id, job.claim_for, now);
        }
    }

    /// Claims a job for a try that must have a result within `claim_for`.
    pub(super) fn claim(
        &mut self,
        account: &AccountId,
        id: &JobId,
        try_id: TryId,
        claim_for: Duration,
        now: Instant,
    ) {
        let deadline = now + claim_for;
        let sending = State::Sending { try_id, deadline };
        let key = (account.clone(), id.clone());
        self.claims.put(key, sending, deadline + self.life, now);
    }

    /// Notes how a try ended, by the rules that the shared claims follow too: "sent" whoever holds
    /// the claim, the other ends only for the try that holds it.
    pub(super) fn conclude(&mut self, conclusion: &Conclusion, now: Moment) {
        let key = (conclusion.account.clone(), conclusion.id.clone());
        let held = self.is_held_by(&key, conclusion.try_id);
        match &conclusion.result {
            TryResult::Sent {
                carrier,
                carrier_ref,
            } => {
                if !matches!(
                    self.standing(&key.0, &key.1, now.instant),
                    Standing::Sent(_)
                ) {
                    let record = SentRecord {
                        at_ms: now.wall_ms(),
                        carrier: carrier.clone(),
                        carrier_ref: carrier_ref.clone(),
                    };
                    let expires = now.instant + self.life;
                    self.claims
                        .put(key, State::Sent(record), expires, now.instant);
                }
            }
            TryResult::NotSent if held => drop(self.claims.remove(&key)),
            TryResult::Unknown if held => {
                let state = State::Sending {
                    try_id: conclusion.try_id,
                    deadline: now.instant,
                };
                let expires = now.instant + self.life;
                self.claims.put(key, state, expires, now.instant);
            }
            TryResult::NotSent | TryResult::Unknown => {}
        }
    }

    /// Forgets a try that is under way no more, when others know how it ended.
    pub(super) fn release(&mut self, conclusion: &Conclusion) {
        let key = (conclusion.account.clone(), conclusion.id.clone());
        if self.is_held_by(&key, conclusion.try_id) {
            self.claims.remove(&key);
        }
    }

    fn is_held_by(&self, key: &Key, by: TryId) -> bool {
        matches!(self.claims.kept(key), Some(State::Sending { try_id, .. }) if *try_id == by)
    }
}
