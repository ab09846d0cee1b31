//! The policies of all accounts, at hand in memory.

use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::watch;

use super::policy::AccountPolicy;
use super::snapshot::{Base, Snapshot};
use crate::domain::AccountId;
use crate::settings::Settings;

/// The policy of every account. Asking costs a look-up in memory, whatever the database does: what
/// it says is taken in as a whole by [`keep`](super::keep), and the last that was taken in holds
/// until there is something newer.
#[derive(Debug)]
pub struct Directory {
    base: Arc<Base>,
    current: RwLock<Arc<Snapshot>>,
    loaded: watch::Sender<bool>,
}

impl Directory {
    /// The accounts that the settings name, and the policy for all others: all there is to know
    /// without a database.
    #[must_use]
    pub fn from_settings(settings: &Settings) -> Self {
        Self::new(settings, true)
    }

    /// A directory that is yet to be read from the database. Until it [is loaded](Self::loaded) it
    /// says what the settings say, which nothing may be decided by.
    #[must_use]
    pub fn of_database(settings: &Settings) -> Self {
        Self::new(settings, false)
    }

    fn new(settings: &Settings, is_loaded: bool) -> Self {
        let base = Arc::new(Base::of(settings));
        Self {
            current: RwLock::new(Arc::new(Snapshot::of_settings(&base))),
            base,
            loaded: watch::Sender::new(is_loaded),
        }
    }

    /// The account's policy; `None` when accounts that nobody has configured are to be refused,
    /// and this is one.
    #[must_use]
    pub fn policy(&self, account: &AccountId) -> Option<Arc<AccountPolicy>> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        current.policy(account).cloned()
    }

    /// Changes an account's policy in a directory that follows no tables; `None` where such accounts
    /// are refused. It holds until the process ends.
    pub fn change<T>(
        &self,
        account: &AccountId,
        change: impl FnOnce(&mut AccountPolicy) -> T,
    ) -> Option<T> {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let mut policy = AccountPolicy::clone(current.policy(account)?);
        let done = change(&mut policy);
        *current = Arc::new(current.with(account, policy));
        Some(done)
    }

    /// Whether it may be decided by: the tables have been read at least once, or there are none.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        *self.loaded.borrow()
    }

    /// Tells when it may be decided by.
    #[must_use]
    pub fn loaded(&self) -> watch::Receiver<bool> {
        self.loaded.subscribe()
    }

    pub(super) fn base(&self) -> &Arc<Base> {
        &self.base
    }

    /// The version of the tables that it was read from last.
    pub(super) fn version(&self) -> Option<i64> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        current.version()
    }

    /// What holds now.
    pub(super) fn current(&self) -> Arc<Snapshot> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes in what was read. Gives what held before, so that whoever calls can choose where the
    /// time for freeing it is spent.
    pub(super) fn replace(&self, snapshot: Snapshot) -> Arc<Snapshot> {
        let snapshot = Arc::new(snapshot);
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *current, snapshot);
        drop(current);
        self.loaded.send_replace(true);
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Budget, Ceilings, Lane, Reserve};

    fn directory(accounts: &str) -> Directory {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), accounts).unwrap();
        let none: [(&str, &str); 0] = [];
        Directory::from_settings(&Settings::load(Some(file.path()), none).unwrap())
    }

    fn both(policy: Option<Arc<AccountPolicy>>) -> Option<(u32, u32)> {
        let ceilings = policy?.ceilings;
        Some((
            ceilings.of_lane(Lane::Transactional),
            ceilings.of_lane(Lane::Marketing),
        ))
    }

    #[test]
    fn an_account_has_its_own_ceilings_or_the_default_ones() {
        let directory = directory(
            "[accounts.overrides.Acme]\nbudget_per_second = 10\n\
             [accounts.overrides.quiet]\nreserve_percent = 50\n",
        );
        let of = |id| both(directory.policy(&AccountId::parse(id).unwrap()));
        assert_eq!(of("Acme"), Some((10, 8)));
        assert_eq!(of("quiet"), Some((100, 50)));
        assert_eq!(of("acme"), Some((100, 80)));
    }

    #[test]
    fn a_change_concerns_one_account_alone() {
        let directory = directory("");
        let [one, other] = ["acme", "other"].map(|id| AccountId::parse(id).unwrap());
        let ceilings = Ceilings::of(Budget::per_second(7).unwrap(), Reserve::percent(0).unwrap());
        let changed = directory.change(&one, |policy| policy.ceilings = ceilings);
        assert_eq!(changed, Some(()));
        assert_eq!(both(directory.policy(&one)), Some((7, 7)));
        assert_eq!(both(directory.policy(&other)), Some((100, 80)));
    }

    #[test]
    fn unknown_accounts_are_refused_by_policy() {
        let directory = directory("[accounts]\nunknown = \"refuse\"\n[accounts.overrides.Acme]\n");
        let of = |id| both(directory.policy(&AccountId::parse(id).unwrap()));
        assert_eq!(of("Acme"), Some((100, 80)));
        assert_eq!(of("acme"), None);
    }
}
