//! First answers kept in this process.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::first_answers::{FirstAnswer, Known, known};
use crate::digest::Digest;
use crate::domain::{AccountId, JobId};

/// Below so many requests, looking for old ones is not worth it.
const SWEEP_FROM: usize = 1_024;

/// Requests, and how they were answered first.
#[derive(Debug)]
pub struct Notes {
    life: Duration,
    book: Mutex<Book>,
}

#[derive(Debug)]
struct Book {
    notes: HashMap<(AccountId, JobId), Note>,
    sweep_at: usize,
}

#[derive(Debug)]
struct Note {
    digest: Digest,
    answer: Option<FirstAnswer>,
    noted_at: Instant,
}

impl Notes {
    /// None yet; each is kept for `life`.
    #[must_use]
    pub fn new(life: Duration) -> Self {
        let book = Book {
            notes: HashMap::new(),
            sweep_at: SWEEP_FROM,
        };
        Self {
            life,
            book: Mutex::new(book),
        }
    }

    /// Notes a request, unless it is known.
    pub(super) fn begin(
        &self,
        account: &AccountId,
        id: &JobId,
        digest: Digest,
        now: Instant,
    ) -> Known {
        let mut book = self.book();
        book.sweep(self.life, now);
        let key = (account.clone(), id.clone());
        let young = |note: &&Note| now < note.noted_at + self.life;
        if let Some(note) = book.notes.get(&key).filter(young) {
            return known(note.digest == digest, false, note.answer);
        }
        let note = Note {
            digest,
            answer: None,
            noted_at: now,
        };
        book.notes.insert(key, note);
        Known::New
    }

    /// How a request was answered, if it was.
    pub(super) fn find(&self, account: &AccountId, id: &JobId) -> Option<FirstAnswer> {
        let book = self.book();
        let note = book.notes.get(&(account.clone(), id.clone()));
        note.and_then(|note| note.answer)
    }

    /// Writes down how a request was answered first.
    pub(super) fn answered(
        &self,
        account: &AccountId,
        id: &JobId,
        digest: Digest,
        answer: FirstAnswer,
    ) {
        let mut book = self.book();
        let note = book.notes.entry((account.clone(), id.clone()));
        let note = note.or_insert_with(|| Note {
            digest,
            answer: None,
            noted_at: Instant::now(),
        });
        note.answer.get_or_insert(answer);
    }

    /// Forgets a request that was not answered.
    pub(super) fn forget(&self, account: &AccountId, id: &JobId) {
        let mut book = self.book();
        let key = (account.clone(), id.clone());
        if book
            .notes
            .get(&key)
            .is_some_and(|note| note.answer.is_none())
        {
            book.notes.remove(&key);
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    fn sweep(&mut self, life: Duration, now: Instant) {
        if self.notes.len() >= self.sweep_at {
            self.notes.retain(|_, note| now < note.noted_at + life);
            self.sweep_at = SWEEP_FROM.max(self.notes.len() * 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::domain::Lane;

    const LIFE: Duration = Duration::from_secs(60);

    fn account() -> AccountId {
        AccountId::parse("acme").unwrap()
    }

    fn answer() -> FirstAnswer {
        FirstAnswer {
            lane: Lane::Marketing,
            at: Timestamp::UNIX_EPOCH,
            waits_until: Some(Timestamp::MAX),
        }
    }

    #[test]
    fn an_answer_is_the_first_one_until_its_life_is_over() {
        let (notes, start) = (Notes::new(LIFE), Instant::now());
        let (id, digest) = (JobId::parse("msg_1").unwrap(), Digest::of(b"one"));
        let begin = |digest, at| notes.begin(&account(), &id, digest, at);
        assert_eq!(begin(digest, start), Known::New);
        assert_eq!(begin(digest, start), Known::Begun);
        assert_eq!(begin(Digest::of(b"two"), start), Known::Other);
        notes.answered(&account(), &id, digest, answer());
        assert_eq!(begin(digest, start), Known::Answered(answer()));
        assert_eq!(begin(Digest::of(b"two"), start + LIFE), Known::New);
    }

    #[test]
    fn what_is_old_is_swept_out() {
        let (notes, start) = (Notes::new(LIFE), Instant::now());
        for number in 0..SWEEP_FROM {
            let id = JobId::parse(&format!("msg_{number}")).unwrap();
            notes.begin(&account(), &id, Digest::of(b"one"), start);
        }
        let id = JobId::parse("later").unwrap();
        notes.begin(&account(), &id, Digest::of(b"one"), start + LIFE);
        assert_eq!(notes.book().notes.len(), 1);
    }

    #[test]
    fn a_request_of_the_same_microsecond_is_new_only_if_it_is_the_same_and_not_answered() {
        assert_eq!(known(false, true, None), Known::Other);
        assert_eq!(known(true, true, Some(answer())), Known::Answered(answer()));
        assert_eq!(known(true, true, None), Known::New);
        assert_eq!(known(true, false, None), Known::Begun);
    }
}
