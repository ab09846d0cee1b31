//! Claims kept in this process: which jobs are being tried, and which have been sent.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::dispatch::ports::{Conclusion, TryId, TryResult};
use crate::domain::{AccountId, JobId, SentRecord};

/// One instant on both clocks: the steady one that durations are measured by, and the wall clock
/// that goes into records.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// By the steady clock.
    pub instant: Instant,
    /// By the wall clock.
    pub wall: Timestamp,
}

/// How a job stands in the book.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing<'a> {
    /// Nothing is known of it.
    Free,
    /// A try is under way.
    InProgress,
    /// A try was under way, and its time is over without a known result.
    Unfinished,
    /// A carrier has taken it.
    Sent(&'a SentRecord),
}

#[derive(Debug)]
enum State {
    Sending { try_id: TryId, deadline: Instant },
    Sent(SentRecord),
}

/// A claim's place in the order of expiry.
type Place = (Instant, u64);
type Key = (AccountId, JobId);

/// Claims in memory. They expire, and beyond a bound the ones next to expire give way.
#[derive(Debug)]
pub(super) struct ClaimBook {
    life: Duration,
    bound: usize,
    claims: HashMap<Key, (State, Place)>,
    by_expiry: BTreeMap<Place, Key>,
    written: u64,
}

impl ClaimBook {
    /// A book that keeps each claim for `life` after its try's deadline, and at most `bound` of
    /// them. A life of zero keeps none.
    pub(super) fn new(life: Duration, bound: usize) -> Self {
        Self {
            life,
            bound,
            claims: HashMap::new(),
            by_expiry: BTreeMap::new(),
            written: 0,
        }
    }

    /// How a job stands at `now`.
    pub(super) fn standing(&self, account: &AccountId, id: &JobId, now: Instant) -> Standing<'_> {
        if self.claims.is_empty() {
            return Standing::Free;
        }
        match self.claims.get(&(account.clone(), id.clone())) {
            Some((_, (expires, _))) if *expires <= now => Standing::Free,
            None => Standing::Free,
            Some((State::Sent(record), _)) => Standing::Sent(record),
            Some((State::Sending { deadline, .. }, _)) if *deadline > now => Standing::InProgress,
            Some((State::Sending { .. }, _)) => Standing::Unfinished,
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
        self.write(
            (account.clone(), id.clone()),
            State::Sending { try_id, deadline },
            deadline + self.life,
            now,
        );
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
                        at_ms: u64::try_from(now.wall.as_millisecond()).unwrap_or(0),
                        carrier: carrier.clone(),
                        carrier_ref: carrier_ref.clone(),
                    };
                    let expires = now.instant + self.life;
                    self.write(key, State::Sent(record), expires, now.instant);
                }
            }
            TryResult::NotSent if held => self.remove(&key),
            TryResult::Unknown if held => {
                let state = State::Sending {
                    try_id: conclusion.try_id,
                    deadline: now.instant,
                };
                let expires = now.instant + self.life;
                self.write(key, state, expires, now.instant);
            }
            TryResult::NotSent | TryResult::Unknown => {}
        }
    }

    /// Forgets a try that is under way no more, when others know how it ended.
    pub(super) fn release(&mut self, conclusion: &Conclusion) {
        let key = (conclusion.account.clone(), conclusion.id.clone());
        if self.is_held_by(&key, conclusion.try_id) {
            self.remove(&key);
        }
    }

    fn is_held_by(&self, key: &Key, by: TryId) -> bool {
        matches!(self.claims.get(key), Some((State::Sending { try_id, .. }, _)) if *try_id == by)
    }

    fn write(&mut self, key: Key, state: State, expires: Instant, now: Instant) {
        if self.life.is_zero() || self.bound == 0 {
            return;
        }
        self.remove(&key);
        self.make_room(now);
        self.written += 1;
        let place = (expires, self.written);
        self.by_expiry.insert(place, key.clone());
        self.claims.insert(key, (state, place));
    }

    fn remove(&mut self, key: &Key) {
        if let Some((_, place)) = self.claims.remove(key) {
            self.by_expiry.remove(&place);
        }
    }

    fn make_room(&mut self, now: Instant) {
        while let Some(first) = self.by_expiry.first_entry() {
            if first.key().0 > now && self.claims.len() < self.bound {
                break;
            }
            self.claims.remove(&first.remove());
        }
    }
}
