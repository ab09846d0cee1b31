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
#[derive(Debug, Clone)]
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

    /// The same with another policy for one account.
    pub(super) fn with(&self, account: &AccountId, policy: AccountPolicy) -> Self {
        let mut changed = self.clone();
        changed.known.insert(account.clone(), Arc::new(policy));
        changed
    }

    pub(super) fn version(&self) -> Option<i64> {
        self.version
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// Accounts whose policy cannot be followed, each with the reason, but for those that `before`
    /// had with the same one: they have been told.
    pub(super) fn new_faults(&self, before: &Self) -> impl Iterator<Item = (&AccountId, &str)> {
        self.faults()
            .filter(|(id, why)| before.fault(id) != Some(why))
    }

    fn fault(&self, account: &AccountId) -> Option<&str> {
        self.known.get(account)?.quiet_hours.fault()
    }

    fn faults(&self) -> impl Iterator<Item = (&AccountId, &str)> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::stored::AccountRow;

    fn snapshot(rows: &[(&str, &str)]) -> Snapshot {
        let none: [(&str, &str); 0] = [];
        let base = Base::of(&Settings::load(None, none).unwrap());
        let mut stored = Stored::default();
        for (account, windows) in rows {
            stored.add_account(&AccountRow {
                account_id: (*account).to_owned(),
                budget_per_second: None,
                reserve_percent: None,
                quiet_hours: true,
                quiet_action: "refuse".to_owned(),
                time_zone: Some("Europe/London".to_owned()),
                windows: (*windows).to_owned(),
            });
        }
        Snapshot::of_tables(&base, stored, 1)
    }

    /// Any change of any account has all of them read again.
    #[test]
    fn what_cannot_be_read_is_told_once_until_it_changes() {
        let bad = r#"{"sms":"x"}"#;
        let first = snapshot(&[("one", bad), ("two", bad), ("good", "{}")]);
        let told = |now: &Snapshot, before: &Snapshot| {
            let mut told: Vec<_> = now
                .new_faults(before)
                .map(|(id, _)| id.to_string())
                .collect();
            told.sort();
            told
        };
        assert_eq!(told(&first, &snapshot(&[])), ["one", "two"]);
        let again = snapshot(&[("one", bad), ("two", bad), ("good", "{}")]);
        assert!(told(&again, &first).is_empty());
        let other = snapshot(&[("one", r#"{"fax":null}"#), ("two", bad), ("good", bad)]);
        assert_eq!(told(&other, &again), ["good", "one"]);
        let mended = snapshot(&[("one", "{}"), ("two", bad)]);
        assert!(told(&mended, &other).is_empty());
        assert_eq!(told(&first, &mended), ["one"]);
    }
}
