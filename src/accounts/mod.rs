//! What is known of accounts: their ceilings.

use std::collections::HashMap;

use crate::domain::{AccountId, Ceilings};
use crate::settings::{Settings, UnknownAccount};

/// The ceilings of every account, worked out once.
#[derive(Debug, Clone)]
pub struct Directory {
    known: HashMap<AccountId, Ceilings>,
    others: Option<Ceilings>,
}

impl Directory {
    /// The accounts that the settings name, and the policy for all others.
    #[must_use]
    pub fn from_settings(settings: &Settings) -> Self {
        let overrides = settings.accounts.overrides.iter();
        let known = overrides.map(|(id, own)| (id.clone(), Ceilings::of(own.budget, own.reserve)));
        Self {
            known: known.collect(),
            others: match settings.accounts.unknown {
                UnknownAccount::Default => Some(settings.lanes.ceilings()),
                UnknownAccount::Refuse => None,
            },
        }
    }

    /// The account's ceilings; `None` when the policy is to refuse accounts that nobody has
    /// configured, and this is one.
    #[must_use]
    pub fn ceilings(&self, account: &AccountId) -> Option<Ceilings> {
        self.known.get(account).copied().or(self.others)
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

    fn both(ceilings: Option<Ceilings>) -> Option<(u32, u32)> {
        ceilings.map(|of| (of.of_lane(Lane::Transactional), of.of_lane(Lane::Marketing)))
    }

    #[test]
    fn an_account_has_its_own_ceilings_or_the_default_ones() {
        let directory = directory(
            "[accounts.overrides.Acme]\nbudget_per_second = 10\n\
             [accounts.overrides.quiet]\nreserve_percent = 50\n",
        );
        let of = |id| both(directory.ceilings(&AccountId::parse(id).unwrap()));
        assert_eq!(of("Acme"), Some((10, 8)));
        assert_eq!(of("quiet"), Some((100, 50)));
        assert_eq!(of("acme"), Some((100, 80)));
    }

    #[test]
    fn unknown_accounts_are_refused_by_policy() {
        let directory = directory("[accounts]\nunknown = \"refuse\"\n[accounts.overrides.Acme]\n");
        let of = |id| both(directory.ceilings(&AccountId::parse(id).unwrap()));
        assert_eq!(of("Acme"), Some((100, 80)));
        assert_eq!(of("acme"), None);
    }
}
