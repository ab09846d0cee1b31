//! Places for what lasts: so many in this process, and of these so many for one holder.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Places, by who holds them.
#[derive(Debug)]
pub(super) struct Places<H: Eq + Hash> {
    taken: Mutex<HashMap<H, usize>>,
    in_all: usize,
    per_holder: usize,
}

/// Why there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    /// The holder has all that it may have.
    Holder(usize),
    /// There is none left for anybody.
    Process(usize),
}

impl Full {
    /// How many there are.
    pub(super) const fn limit(self) -> usize {
        match self {
            Self::Holder(limit) | Self::Process(limit) => limit,
        }
    }
}

/// A place, until it goes out of scope.
#[derive(Debug)]
pub(super) struct Place<H: Eq + Hash> {
    places: Arc<Places<H>>,
    holder: H,
}

impl<H: Eq + Hash + Clone> Places<H> {
    pub(super) fn new(in_all: usize, per_holder: usize) -> Arc<Self> {
        Arc::new(Self {
            taken: Mutex::default(),
            in_all,
            per_holder,
        })
    }

    /// Takes a place for a holder.
    ///
    /// # Errors
    /// [`Full`].
    pub(super) fn take(self: &Arc<Self>, holder: H) -> Result<Place<H>, Full> {
        let mut taken = self.taken();
        if taken.get(&holder).copied().unwrap_or(0) >= self.per_holder {
            return Err(Full::Holder(self.per_holder));
        }
        if taken.values().sum::<usize>() >= self.in_all {
            return Err(Full::Process(self.in_all));
        }
        *taken.entry(holder.clone()).or_default() += 1;
        Ok(Place {
            places: Arc::clone(self),
            holder,
        })
    }
}

impl<H: Eq + Hash> Places<H> {
    fn taken(&self) -> MutexGuard<'_, HashMap<H, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<H: Eq + Hash> Drop for Place<H> {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        if let Some(count) = taken.get_mut(&self.holder) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.holder);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holder_leaves_room_for_others_and_gives_back_what_it_had() {
        let places = Places::new(3, 2);
        let first = places.take("acme").unwrap();
        let _second = places.take("acme").unwrap();
        assert_eq!(places.take("acme").unwrap_err(), Full::Holder(2));
        let _third = places.take("other").unwrap();
        assert_eq!(places.take("last").unwrap_err(), Full::Process(3));
        drop(first);
        assert!(places.take("acme").is_ok());
        assert_eq!(places.taken().len(), 2);
    }
}
