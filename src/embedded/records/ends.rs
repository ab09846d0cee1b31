//! Ended jobs in memory.

use std::collections::{BTreeSet, HashMap, VecDeque};

use jiff::Timestamp;

use crate::dispatch::ports::Ended;
use crate::domain::{AccountId, JobId, Outcome};
use crate::ledger::{Entry, LOOKED_AT, Page, Place, RecipientForm, Wanted};

/// So many are kept; beyond that the oldest give way.
const BOUND: usize = 200_000;

type Key = (AccountId, JobId);

/// How jobs ended.
#[derive(Debug, Default)]
pub(super) struct Ends {
    all: HashMap<Key, Ended>,
    /// In the order in which they were written down.
    written: VecDeque<Key>,
    /// By the instant at which they ended, in milliseconds since the Unix epoch.
    newest: HashMap<AccountId, BTreeSet<(i64, JobId)>>,
    /// When the last of those ended that are not here.
    gap_until: Option<Timestamp>,
}

impl Ends {
    /// Writes down how a job ended. What is known stays, unless the job turns out to have been
    /// dispatched after all.
    pub(super) fn write(&mut self, ended: &Ended) {
        let key = (ended.head.account.clone(), ended.head.id.clone());
        let known = self.all.get(&key).map(|known| known.outcome);
        let replaces = known.is_some_and(|known| known != Outcome::Dispatched)
            && ended.outcome == Outcome::Dispatched;
        if known.is_some() && !replaces {
            return;
        }
        if known.is_some() {
            self.unlist(&key);
        } else {
            self.written.push_back(key.clone());
        }
        let place = (ended.settled_at.as_millisecond(), key.1.clone());
        self.newest.entry(key.0.clone()).or_default().insert(place);
        self.all.insert(key, ended.clone());
        self.make_room();
    }

    /// Notes that jobs which ended until then are not here.
    pub(super) fn note_gap(&mut self, until: Timestamp) {
        self.gap_until = self.gap_until.max(Some(until));
    }

    /// Whether jobs may be missing that ended at `since` or later.
    pub(super) fn have_gap(&self, since: Timestamp) -> bool {
        self.gap_until.is_some_and(|until| until >= since)
    }

    /// Every ended job that is kept.
    pub(super) fn all(&self) -> impl Iterator<Item = &Ended> {
        self.all.values()
    }

    /// How a job ended.
    pub(super) fn get(&self, account: &AccountId, id: &JobId) -> Option<&Ended> {
        self.all.get(&(account.clone(), id.clone()))
    }

    /// As [`page`](crate::ledger::page).
    pub(super) fn page(
        &self,
        account: &AccountId,
        wanted: Wanted<'_>,
        behind: Option<&Place>,
        count: u16,
    ) -> Page {
        let count = usize::from(count);
        let mut entries: Vec<Entry> = Vec::new();
        let (mut last, mut looked_at) = (None, 0);
        let places = self.newest.get(account).into_iter().flatten().rev();
        let is_behind = |place: &&(i64, JobId)| {
            behind
                .is_none_or(|behind| (place.0, place.1.as_str()) < (behind.settled_ms, &*behind.id))
        };
        for (settled_ms, id) in places.filter(is_behind) {
            if entries.len() == count || looked_at == LOOKED_AT {
                return Page {
                    entries,
                    next: last,
                };
            }
            looked_at += 1;
            last = Some(Place {
                settled_ms: *settled_ms,
                id: id.to_string(),
            });
            let entry = self.get(account, id).map(entry_of);
            entries.extend(entry.filter(|entry| wanted.includes(entry)));
        }
        Page {
            entries,
            next: None,
        }
    }

    fn make_room(&mut self) {
        while self.all.len() > BOUND {
            let Some(oldest) = self.written.pop_front() else {
                return;
            };
            self.unlist(&oldest);
            if let Some(ended) = self.all.remove(&oldest) {
                self.note_gap(ended.settled_at);
            }
        }
    }

    fn unlist(&mut self, key: &Key) {
        let known = self.all.get(key).map(|known| known.settled_at);
        if let (Some(at), Some(places)) = (known, self.newest.get_mut(&key.0)) {
            places.remove(&(at.as_millisecond(), key.1.clone()));
        }
    }
}

/// An ended job as the ledger would have it.
pub(super) fn entry_of(ended: &Ended) -> Entry {
    Entry::of(ended, &RecipientForm::Masked)
}
