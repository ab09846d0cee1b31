//! What is known of accounts: what operators have laid down for each.

mod policy;

use std::collections::HashMap;
use std::sync::Arc;

use crate::domain::{AccountId, Ceilings};
use crate::settings::{Settings, UnknownAccount};

pub use policy::{AccountPolicy, CapRule};

/// The policy of every account, worked out once.
#[derive(Debug, Clone)]
pub struct Directory {
    known: HashMap<AccountId, Arc<AccountPolicy>>,
    others: Option<Arc<AccountPolicy>>,
}

impl Directory {
    /// The accounts that the settings name, and the policy for all others.
    #[must_use]
    pub fn from_settings(settings: &Settings) -> Self {
        let overrides = settings.accounts.overrides.iter();
        let known = overrides.map(|(id, own)| {
            let ceilings = Ceilings::of(own.budget, own.reserve);
            (id.clone(), Arc::new(AccountPolicy::of(ceilings)))
        });
        Self {
            known: known.collect(),
            others: match settings.accounts.unknown {
                UnknownAccount::Default => {
                    Some(Arc::new(AccountPolicy::of(settings.lanes.ceilings())))
                }
                UnknownAccount::Refuse => None,
            },
        }
    }

    /// The account's policy; `None` when accounts that nobody has configured are to be refused,
    /// and this is one.
    #[must_use]
    pub fn policy(&self, account: &AccountId) -> Option<Arc<AccountPolicy>> {
        self.known.get(account).or(self.others.as_ref()).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Lane;

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
    fn unknown_accounts_are_refused_by_policy() {
        let directory = directory("[accounts]\nunknown = \"refuse\"\n[accounts.overrides.Acme]\n");
        let of = |id| both(directory.policy(&AccountId::parse(id).unwrap()));
        assert_eq!(of("Acme"), Some((100, 80)));
        assert_eq!(of("acme"), None);
    }
}
