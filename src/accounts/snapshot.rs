//! The policy of every account at one moment.

use std::collections::HashMap;
use std::sync::Arc;

use super::policy::AccountPolicy;
use super::stored::Stored;
use crate::domain::{AccountId, Budget, Ceilings, Reserve};
use crate::settings::{AccountBudget, Settings, UnknownAccount};

/// What the settings say of accounts: it holds where the tables say nothing.
#[derive(Debug, Clone)]
pub(super) struct Base {
    overrides: HashMap<AccountId, AccountBudget>,
    others: AccountBudget,
    unknown: UnknownAccount,
}

impl Base {
    pub(super) fn of(settings: &Settings) -> Self {
        let overrides = settings.accounts.overrides.iter();
        Self {
            overrides: overrides.map(|(id, own)| (id.clone(), *own)).collect(),
            others: AccountBudget {
                budget: settings.lanes.budget,
                reserve: settings.lanes.reserve,
            },
            unknown: settings.accounts.unknown,
        }
    }

    /// Budget and reserve of an account, each from its row if that says it.
    pub(super) fn budget_of(
        &self,
        account: &AccountId,
        budget: Option<Budget>,
        reserve: Option<Reserve>,
    ) -> AccountBudget {
        let base = self.overrides.get(account).unwrap_or(&self.others);
        AccountBudget {
            budget: budget.unwrap_or(base.budget),
            reserve: reserve.unwrap_or(base.reserve),
        }
    }
}

/// Every account's policy, worked out once.
#[derive(Debug)]
pub(super) struct Snapshot {
    known: HashMap<AccountId, Arc<AccountPolicy>>,
    others: Option<Arc<AccountPolicy>>,
    /// That of the tables that it was made of.
    version: Option<i64>,
}

impl Snapshot {
    /// What the settings alone say.
    pub(super) fn of_settings(base: &Base) -> Self {
        Self::of(base, Stored::default(), None)
    }

    /// What the tables say, on top of the settings.
    pub(super) fn of_tables(base: &Base, stored: Stored, version: i64) -> Self {
        Self::of(base, stored, Some(version))
    }

    fn of(base: &Base, stored: Stored, version: Option<i64>) -> Self {
        let mut plain = Plain::default();
        let unknown = stored.unknown.unwrap_or(base.unknown);
        let others = plain.policy(base.others);
        let mut known = HashMap::with_capacity(base.overrides.len() + stored.accounts.len());
        for (id, own) in &base.overrides {
            known.insert(id.clone(), plain.policy(*own));
        }
        for (id, account) in stored.accounts {
            let own = base.budget_of(&id, account.budget, account.reserve);
            let policy = match account.rules {
                None => plain.policy(own),
                Some(rules) => Arc::new(rules.into_policy(ceilings(own))),
            };
            known.insert(id, policy);
        }
        Self {
            known,
            others: (unknown == UnknownAccount::Default).then_some(others),
            version,
        }
    }

    pub(super) fn policy(&self, account: &AccountId) -> Option<&Arc<AccountPolicy>> {
        self.known.get(account).or(self.others.as_ref())
    }

    pub(super) fn version(&self) -> Option<i64> {
        self.version
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// Accounts whose policy cannot be followed, each with the reason.
    pub(super) fn faults(&self) -> impl Iterator<Item = (&AccountId, &str)> {
        let policies = self.known.iter();
        policies.filter_map(|(id, policy)| Some((id, policy.quiet_hours.fault()?)))
    }
}

/// Policies of ceilings alone. Most accounts have one of a few: they share it.
#[derive(Default)]
struct Plain(HashMap<(u32, u8), Arc<AccountPolicy>>);

impl Plain {
    fn policy(&mut self, own: AccountBudget) -> Arc<AccountPolicy> {
        let policy = self.0.entry((own.budget.get(), own.reserve.get()));
        let policy = policy.or_insert_with(|| Arc::new(AccountPolicy::of(ceilings(own))));
        Arc::clone(policy)
    }
}

fn ceilings(own: AccountBudget) -> Ceilings {
    Ceilings::of(own.budget, own.reserve)
}
