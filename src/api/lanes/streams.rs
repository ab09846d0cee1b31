//! How many streams are open.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::accounts::keys::KeyId;

/// Streams at one time in this process.
const IN_ALL: usize = 64;

/// Of these with one key, or without any.
const PER_KEY: usize = 8;

type Open = HashMap<Option<KeyId>, usize>;

/// The streams that are open, by the key that opened them.
#[derive(Debug, Clone, Default)]
pub struct Streams(Arc<Mutex<Open>>);

/// A place among them, for as long as it is kept.
#[derive(Debug)]
pub(super) struct Place {
    streams: Streams,
    key: Option<KeyId>,
}

/// There is no place left: so many streams may be open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full(pub usize);

impl Streams {
    /// A place for one more.
    pub(super) fn enter(&self, key: Option<KeyId>) -> Result<Place, Full> {
        let mut open = self.open();
        if open.values().sum::<usize>() >= IN_ALL {
            return Err(Full(IN_ALL));
        }
        let mine = open.entry(key).or_default();
        if *mine >= PER_KEY {
            return Err(Full(PER_KEY));
        }
        *mine += 1;
        Ok(Place {
            streams: self.clone(),
            key,
        })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.streams.open();
        if let Some(mine) = open.get_mut(&self.key) {
            *mine -= 1;
            if *mine == 0 {
                open.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> KeyId {
        let letter = |number: usize| char::from(b"abcdefghijklmnopqrstuvwxyz"[number % 26]);
        let id = format!("aaaaaaaaaa{}{}", letter(number / 26), letter(number));
        KeyId::parse(id.as_bytes()).unwrap()
    }

    #[test]
    fn a_key_has_a_few_places_and_gets_them_back() {
        let streams = Streams::default();
        let mut places: Vec<_> = (0..PER_KEY).map(|_| streams.enter(None).unwrap()).collect();
        assert_eq!(streams.enter(None).unwrap_err(), Full(PER_KEY));
        places.pop();
        streams.enter(None).unwrap();
    }

    #[test]
    fn there_are_no_more_than_so_many_in_all() {
        let streams = Streams::default();
        let places: Vec<_> = (0..IN_ALL)
            .map(|number| streams.enter(Some(key(number))).unwrap())
            .collect();
        assert_eq!(streams.enter(None).unwrap_err(), Full(IN_ALL));
        drop(places);
        assert!(streams.open().is_empty());
    }
}
