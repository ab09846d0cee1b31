//! Entries that are of no use to anybody after some instant.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use tokio::time::Instant;

/// An entry's place in the order of expiry.
type Place = (Instant, u64);

/// Entries by key. They expire, and beyond a bound the ones next to expire give way.
#[derive(Debug)]
pub(super) struct Expiring<K, V> {
    bound: usize,
    entries: HashMap<K, (V, Place)>,
    by_expiry: BTreeMap<Place, K>,
    written: u64,
}

impl<K: Clone + Eq + Hash, V> Expiring<K, V> {
    /// Room for at most `bound` entries.
    pub(super) fn new(bound: usize) -> Self {
        Self {
            bound,
            entries: HashMap::new(),
            by_expiry: BTreeMap::new(),
            written: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many are kept, expired ones among them.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// An entry that has not expired at `now`.
    pub(super) fn get(&self, key: &K, now: Instant) -> Option<&V> {
        let (value, (expires, _)) = self.entries.get(key)?;
        (*expires > now).then_some(value)
    }

    /// As [`Expiring::get`]; writing through it moves no expiry.
    pub(super) fn get_mut(&mut self, key: &K, now: Instant) -> Option<&mut V> {
        let (value, (expires, _)) = self.entries.get_mut(key)?;
        (*expires > now).then_some(value)
    }

    /// An entry, expired or not.
    pub(super) fn kept(&self, key: &K) -> Option<&V> {
        self.entries.get(key).map(|(value, _)| value)
    }

    /// Puts an entry in the place of one with that key.
    pub(super) fn put(&mut self, key: K, value: V, expires: Instant, now: Instant) {
        if self.bound == 0 {
            return;
        }
        self.remove(&key);
        self.make_room(now);
        self.written += 1;
        let place = (expires, self.written);
        self.by_expiry.insert(place, key.clone());
        self.entries.insert(key, (value, place));
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
        let (value, place) = self.entries.remove(key)?;
        self.by_expiry.remove(&place);
        Some(value)
    }

    fn make_room(&mut self, now: Instant) {
        while let Some(first) = self.by_expiry.first_entry() {
            if first.key().0 > now && self.entries.len() < self.bound {
                break;
            }
            self.entries.remove(&first.remove());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn an_entry_is_gone_at_the_instant_of_its_expiry() {
        let start = Instant::now();
        let mut entries = Expiring::new(10);
        entries.put("key", 1, start + SECOND, start);
        let before = start + SECOND - Duration::from_nanos(1);
        assert_eq!(entries.get(&"key", before), Some(&1));
        assert_eq!(entries.get(&"key", start + SECOND), None);
        assert_eq!(entries.get_mut(&"key", start + SECOND), None);
        assert_eq!(entries.kept(&"key"), Some(&1));
    }

    #[test]
    fn the_expired_go_first_and_then_those_next_to_expire() {
        let start = Instant::now();
        let mut entries = Expiring::new(2);
        entries.put("late", 1, start + 9 * SECOND, start);
        entries.put("soon", 2, start + 2 * SECOND, start);
        entries.put("later", 3, start + 8 * SECOND, start);
        assert_eq!(entries.kept(&"soon"), None);
        assert_eq!(entries.len(), 2);
        // One that is written anew moves in the order.
        entries.put("late", 4, start + 3 * SECOND, start);
        entries.put("new", 5, start + 4 * SECOND, start);
        assert_eq!(entries.kept(&"late"), None);
        assert_eq!(entries.kept(&"later"), Some(&3));
        entries.put("last", 6, start + 20 * SECOND, start + 10 * SECOND);
        assert_eq!(entries.len(), 1);
    }

    #[test]
    fn without_room_nothing_is_kept() {
        let start = Instant::now();
        let mut entries = Expiring::new(0);
        entries.put("key", 1, start + SECOND, start);
        assert!(entries.is_empty());
    }
}
