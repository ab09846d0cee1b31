//! `[accounts]`: budgets of single accounts, and accounts that nobody has configured.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use config::{Map, Value, ValueKind};

use super::SettingsError;
use super::known::nearest;
use super::lanes::{Lanes, read_budget, read_reserve};
use super::layers::{Table, read_toml};
use super::reader::Section;
use crate::domain::{AccountId, Budget, Reserve};

/// What happens to an account that nobody has configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownAccount {
    /// It has the default budget and reserve.
    Default,
    /// Its jobs end as refused.
    Refuse,
}

impl UnknownAccount {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Default, Self::Refuse];

    /// The spelling in settings, tables and commands.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Refuse => "refuse",
        }
    }

    /// Reads a policy's name; exact spelling.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.as_str() == text)
    }
}

/// The budget and reserve of one account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountBudget {
    /// Messages per second.
    pub budget: Budget,
    /// The transactional lane's part.
    pub reserve: Reserve,
}

/// The accounts as the settings know them.
#[derive(Debug, Clone)]
pub struct Accounts {
    /// What happens to all others.
    pub unknown: UnknownAccount,
    /// Accounts with a budget of their own, from the settings and from `accounts.file`.
    pub overrides: BTreeMap<AccountId, AccountBudget>,
}

impl Accounts {
    pub(super) fn read(section: &Section<'_>, lanes: &Lanes) -> Result<Self, SettingsError> {
        let unknown = UnknownAccount::ALL.map(|policy| (policy.as_str(), policy));
        let unknown = section.choice("unknown", &unknown)?;
        let mut overrides = BTreeMap::new();
        if let Some(table) = section.table("overrides") {
            read_overrides(table, "accounts.overrides", lanes, &mut overrides)?;
        }
        let file = section.parsed_if_given("file", |text| Ok::<_, String>(text.to_owned()))?;
        if let Some(file) = file {
            let table = read_toml(Path::new(&file), "accounts.file")?;
            read_overrides(&table, &file, lanes, &mut overrides)?;
        }
        Ok(Self { unknown, overrides })
    }
}

/// Reads tables named by account id; `place` says where they stand.
fn read_overrides(
    table: &Table,
    place: &str,
    lanes: &Lanes,
    overrides: &mut BTreeMap<AccountId, AccountBudget>,
) -> Result<(), SettingsError> {
    let names: BTreeSet<&String> = table.keys().collect();
    for name in names {
        let invalid = |problem: &str, expected: String| SettingsError::Invalid {
            place: format!("{place}, account {name:?}"),
            problem: problem.to_owned(),
            expected,
        };
        let id = AccountId::parse(name)
            .map_err(|error| invalid("its id cannot be one", error.to_string()))?;
        let value = table.get(name);
        let Some(ValueKind::Table(values)) = value.map(|value| &value.kind) else {
            let expected = format!("a table such as [{name}] with budget_per_second");
            return Err(invalid("it is no table", expected));
        };
        let budget = read_override(table, name, values, lanes, place)?;
        if overrides.insert(id, budget).is_some() {
            return Err(invalid("it is given twice", "each account once".to_owned()));
        }
    }
    Ok(())
}

fn read_override(
    table: &Table,
    name: &str,
    values: &Table,
    lanes: &Lanes,
    place: &str,
) -> Result<AccountBudget, SettingsError> {
    let defaults: Table = Map::from_iter([
        number("budget_per_second", lanes.budget.get()),
        number("reserve_percent", u32::from(lanes.reserve.get())),
    ]);
    let wrong = values
        .keys()
        .filter(|key| !defaults.contains_key(*key))
        .min();
    if let Some(wrong) = wrong {
        return Err(SettingsError::Unknown {
            name: format!("{wrong} of account {name:?} in {place}"),
            nearest: nearest(wrong, defaults.keys().cloned()),
        });
    }
    let asked = RefCell::default();
    let section = Section::with_fallback(table, name, &defaults, &asked);
    Ok(AccountBudget {
        budget: read_budget(&section)?,
        reserve: read_reserve(&section)?,
    })
}

fn number(key: &str, value: u32) -> (String, Value) {
    (key.to_owned(), Value::new(None, u64::from(value)))
}
