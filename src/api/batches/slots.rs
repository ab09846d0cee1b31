//! How many uploads may be under way at one time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::domain::AccountId;

/// Places for uploads: so many in this process, and of these so many for one account.
#[derive(Debug)]
pub(super) struct Slots {
    taken: Mutex<HashMap<AccountId, usize>>,
    in_all: usize,
    per_account: usize,
}

/// Why there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    /// The account has all that it may have.
    Account(usize),
    /// There is none left for anybody.
    Process(usize),
}

/// A place, until it goes out of scope.
#[derive(Debug)]
pub(super) struct Slot {
    slots: Arc<Slots>,
    account: AccountId,
}

impl Slots {
    pub(super) fn new(in_all: usize, per_account: usize) -> Arc<Self> {
        Arc::new(Self {
            taken: Mutex::default(),
            in_all,
            per_account,
        })
    }

    /// Takes a place for an account.
    ///
    /// # Errors
    /// [`Full`].
    pub(super) fn take(self: &Arc<Self>, account: &AccountId) -> Result<Slot, Full> {
        let mut taken = self.taken();
        if taken.get(account).copied().unwrap_or(0) >= self.per_account {
            return Err(Full::Account(self.per_account));
        }
        if taken.values().sum::<usize>() >= self.in_all {
            return Err(Full::Process(self.in_all));
        }
        *taken.entry(account.clone()).or_default() += 1;
        Ok(Slot {
            slots: Arc::clone(self),
            account: account.clone(),
        })
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<AccountId, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self.slots.taken();
        if let Some(count) = taken.get_mut(&self.account) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.account);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_account_leaves_room_for_others_and_gives_back_what_it_had() {
        let account = |name| AccountId::parse(name).unwrap();
        let slots = Slots::new(3, 2);
        let first = slots.take(&account("acme")).unwrap();
        let _second = slots.take(&account("acme")).unwrap();
        assert_eq!(slots.take(&account("acme")).unwrap_err(), Full::Account(2));
        let _third = slots.take(&account("other")).unwrap();
        assert_eq!(slots.take(&account("last")).unwrap_err(), Full::Process(3));
        drop(first);
        assert!(slots.take(&account("acme")).is_ok());
        assert_eq!(slots.taken().len(), 2);
    }
}
