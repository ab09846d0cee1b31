//! What the tables say of accounts, read and checked, but not yet put on top of the settings.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::policy::{AccountPolicy, CapRule};
use super::quiet_policy::{QuietPolicy, read_stored};
use crate::domain::{AccountId, Budget, Ceilings, Channel, Reserve};
use crate::settings::UnknownAccount;

/// Everything in the tables at one moment.
#[derive(Debug, Default)]
pub(crate) struct Stored {
    pub(super) unknown: Option<UnknownAccount>,
    pub(super) accounts: HashMap<AccountId, StoredAccount>,
}

/// An account's row, and those that belong to it.
#[derive(Debug, Default)]
pub(crate) struct StoredAccount {
    pub(super) budget: Option<Budget>,
    pub(super) reserve: Option<Reserve>,
    /// What it has besides a budget: most accounts have nothing.
    pub(super) rules: Option<Box<Rules>>,
}

/// What an account has besides a budget.
#[derive(Debug, Default)]
pub(super) struct Rules {
    caps: Vec<CapRule>,
    numbers: HashMap<Box<str>, u32>,
    services: HashMap<Box<str>, u32>,
    quiet_hours: Option<QuietPolicy>,
}

impl Rules {
    pub(super) fn into_policy(self, ceilings: Ceilings) -> AccountPolicy {
        AccountPolicy {
            caps: self.caps,
            numbers: self.numbers,
            services: self.services,
            quiet_hours: self.quiet_hours.unwrap_or(QuietPolicy::Off),
            ..AccountPolicy::of(ceilings)
        }
    }
}

/// A row of `accounts`.
#[derive(Debug)]
pub(super) struct AccountRow {
    pub(super) account_id: String,
    pub(super) budget_per_second: Option<i32>,
    pub(super) reserve_percent: Option<i16>,
    pub(super) quiet_hours: bool,
    pub(super) quiet_action: String,
    pub(super) time_zone: Option<String>,
    /// JSON.
    pub(super) windows: String,
}

/// A row of `frequency_caps`.
#[derive(Debug)]
pub(super) struct CapRow {
    pub(super) account_id: String,
    pub(super) name: String,
    pub(super) channel: Option<String>,
    pub(super) category: Option<String>,
    pub(super) max_messages: i32,
    pub(super) window_seconds: i32,
}

/// A row of `ceilings`.
#[derive(Debug)]
pub(super) struct CeilingRow {
    pub(super) account_id: String,
    pub(super) kind: String,
    pub(super) target: String,
    pub(super) per_second: i32,
}

impl Stored {
    pub(super) fn add_account(&mut self, row: &AccountRow) {
        // The table has the ids' alphabet as a constraint.
        let Ok(id) = AccountId::parse(&row.account_id) else {
            return;
        };
        let account = self.accounts.entry(id).or_default();
        account.budget = row.budget_per_second.and_then(budget_of);
        account.reserve = row.reserve_percent.and_then(reserve_of);
        if row.quiet_hours {
            let quiet = read_stored(&row.quiet_action, row.time_zone.as_deref(), &row.windows);
            let quiet = quiet.unwrap_or_else(|why| QuietPolicy::Broken { why });
            account.rules().quiet_hours = Some(quiet);
        }
    }

    /// A cap of a channel that only a newer version knows concerns no job that this one would send.
    pub(super) fn add_cap(&mut self, row: CapRow) {
        let channel = row.channel.as_deref().map(Channel::parse);
        let (Some(account), false) = (self.rules(&row.account_id), channel == Some(None)) else {
            return;
        };
        account.caps.push(CapRule {
            name: Arc::from(row.name),
            channel: channel.flatten(),
            category: row.category.map(Into::into),
            limit: row.max_messages.unsigned_abs(),
            window: Duration::from_secs(row.window_seconds.unsigned_abs().into()),
        });
    }

    pub(super) fn add_ceiling(&mut self, row: CeilingRow) {
        let Some(account) = self.rules(&row.account_id) else {
            return;
        };
        let ceilings = if row.kind == "number" {
            &mut account.numbers
        } else {
            &mut account.services
        };
        ceilings.insert(row.target.into(), row.per_second.unsigned_abs());
    }

    fn rules(&mut self, account: &str) -> Option<&mut Rules> {
        self.accounts.get_mut(account).map(StoredAccount::rules)
    }
}

impl StoredAccount {
    fn rules(&mut self) -> &mut Rules {
        self.rules.get_or_insert_default()
    }
}

pub(super) fn budget_of(per_second: i32) -> Option<Budget> {
    let per_second = u64::try_from(per_second).ok()?;
    Budget::per_second(per_second).ok()
}

pub(super) fn reserve_of(percent: i16) -> Option<Reserve> {
    let percent = u64::try_from(percent).ok()?;
    Reserve::percent(percent).ok()
}
