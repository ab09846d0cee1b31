//! `accounts`, and what happens to those that are not in it.

use std::collections::HashMap;

use serde_json::{Map, Value};
use sqlx::PgConnection;

use super::TableError;
use crate::accounts::quiet_policy::{QuietAction, QuietPolicy, read_stored};
use crate::accounts::stored::{budget_of, reserve_of};
use crate::domain::{AccountId, Budget, Channel, Reserve};
use crate::gates::quiet_hours::SendWindow;
use crate::settings::UnknownAccount;

/// An account's row.
#[derive(Debug, Clone, PartialEq)]
pub struct AccountRecord {
    /// The account.
    pub account: AccountId,
    /// Messages per second; `None`: what the settings say.
    pub budget: Option<Budget>,
    /// The transactional lane's part; `None`: what the settings say.
    pub reserve: Option<Reserve>,
    /// Whether it has quiet hours at all.
    pub quiet_hours: bool,
    /// What becomes of jobs outside their window.
    pub quiet_action: QuietAction,
    /// IANA name, for recipients whose own zone is not known.
    pub time_zone: Option<String>,
    /// The windows of channels that have another than the standard one, as they are stored.
    pub windows: Map<String, Value>,
}

/// A value of one's own, or that of the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting<T> {
    /// What the settings say.
    Default,
    /// One's own.
    Own(T),
}

impl<T> Setting<T> {
    fn own(self) -> Option<T> {
        match self {
            Self::Default => None,
            Self::Own(value) => Some(value),
        }
    }
}

/// What a channel's window becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowChange {
    /// The one that all accounts have.
    Standard,
    /// None: the channel may be used at any hour.
    Off,
    /// The account's own.
    Own(SendWindow),
}

/// What is to be changed of an account; the rest stays as it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AccountChange {
    /// Messages per second.
    pub budget: Option<Setting<Budget>>,
    /// The transactional lane's part.
    pub reserve: Option<Setting<Reserve>>,
    /// Whether it has quiet hours.
    pub quiet_hours: Option<bool>,
    /// What becomes of jobs outside their window.
    pub quiet_action: Option<QuietAction>,
    /// IANA name of a zone that exists.
    pub time_zone: Option<String>,
    /// The windows of channels.
    pub windows: Vec<(Channel, WindowChange)>,
}

impl AccountChange {
    fn concerns_quiet_hours(&self) -> bool {
        self.quiet_hours.is_some()
            || self.quiet_action.is_some()
            || self.time_zone.is_some()
            || !self.windows.is_empty()
    }
}

/// What changes came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changed {
    /// Rows that were not there before.
    pub created: u64,
    /// Rows that say something else now.
    pub changed: u64,
    /// Rows that said the same already.
    pub unchanged: u64,
}

impl Changed {
    /// Of so many rows; for each that was written, whether it was not there before.
    pub(super) fn of(rows: usize, are_new: &[bool]) -> Self {
        let created = are_new.iter().filter(|is_new| **is_new).count();
        Self {
            created: created as u64,
            changed: (are_new.len() - created) as u64,
            unchanged: (rows - are_new.len()) as u64,
        }
    }
}

impl AccountRecord {
    /// An account about which nothing is said yet.
    #[must_use]
    pub fn new(account: AccountId) -> Self {
        Self {
            account,
            budget: None,
            reserve: None,
            quiet_hours: false,
            quiet_action: QuietAction::Refuse,
            time_zone: None,
            windows: Map::new(),
        }
    }

    /// What workers make of its quiet hours.
    #[must_use]
    pub fn quiet_policy(&self) -> QuietPolicy {
        if !self.quiet_hours {
            return QuietPolicy::Off;
        }
        let windows = Value::Object(self.windows.clone()).to_string();
        let zone = self.time_zone.as_deref();
        read_stored(self.quiet_action.as_str(), zone, &windows)
            .unwrap_or_else(|why| QuietPolicy::Broken { why })
    }

    /// The account after a change.
    ///
    /// # Errors
    /// When its quiet hours would make no sense.
    pub fn with(mut self, change: &AccountChange) -> Result<Self, TableError> {
        if let Some(budget) = change.budget {
            self.budget = budget.own();
        }
        if let Some(reserve) = change.reserve {
            self.reserve = reserve.own();
        }
        self.quiet_hours = change.quiet_hours.unwrap_or(self.quiet_hours);
        self.quiet_action = change.quiet_action.unwrap_or(self.quiet_action);
        if let Some(zone) = &change.time_zone {
            self.time_zone = Some(zone.clone());
        }
        for (channel, window) in &change.windows {
            let channel = channel.as_str();
            match window {
                WindowChange::Standard => self.windows.remove(channel),
                WindowChange::Off => self.windows.insert(channel.into(), Value::Null),
                WindowChange::Own(own) => {
                    let own = Value::String(own.to_string());
                    self.windows.insert(channel.into(), own)
                }
            };
        }
        match self.quiet_policy().fault() {
            // What has been wrong before does not stand in the way of a new budget.
            Some(why) if change.concerns_quiet_hours() => Err(TableError::QuietHours {
                account: self.account.clone(),
                why: why.to_owned(),
            }),
            _ => Ok(self),
        }
    }
}

struct Row {
    account_id: String,
    budget_per_second: Option<i32>,
    reserve_percent: Option<i16>,
    quiet_hours: bool,
    quiet_action: String,
    time_zone: Option<String>,
    windows: Value,
}

impl Row {
    /// What cannot be, because of the table's constraints, is as if it were not there.
    fn record(self) -> Option<AccountRecord> {
        let Value::Object(windows) = self.windows else {
            return None;
        };
        Some(AccountRecord {
            account: AccountId::parse(&self.account_id).ok()?,
            budget: self.budget_per_second.and_then(budget_of),
            reserve: self.reserve_percent.and_then(reserve_of),
            quiet_hours: self.quiet_hours,
            quiet_action: QuietAction::parse(&self.quiet_action)?,
            time_zone: self.time_zone,
            windows,
        })
    }
}

/// An account's row, if there is one.
///
/// # Errors
/// When the database does not say.
pub async fn find(
    connection: &mut PgConnection,
    account: &AccountId,
) -> Result<Option<AccountRecord>, TableError> {
    let row = sqlx::query_as!(
        Row,
        "SELECT account_id, budget_per_second, reserve_percent, quiet_hours, quiet_action,
            time_zone, windows
        FROM accounts WHERE account_id = $1",
        account.as_str()
    );
    let row = row.fetch_optional(connection).await?;
    Ok(row.and_then(Row::record))
}

/// At most `count` rows in the order of their ids, from the first id behind `after` on.
///
/// # Errors
/// When the database does not say.
pub async fn page(
    connection: &mut PgConnection,
    after: Option<&AccountId>,
    count: u16,
) -> Result<Vec<AccountRecord>, TableError> {
    let rows = sqlx::query_as!(
        Row,
        "SELECT account_id, budget_per_second, reserve_percent, quiet_hours, quiet_action,
            time_zone, windows
        FROM accounts WHERE account_id > $1 ORDER BY account_id LIMIT $2",
        after.map_or("", AccountId::as_str),
        i64::from(count)
    );
    let rows = rows.fetch_all(connection).await?;
    Ok(rows.into_iter().filter_map(Row::record).collect())
}

/// Changes accounts, each named once, and adds those that are not there yet. To be called in a
/// transaction.
///
/// # Errors
/// When an account's quiet hours would make no sense, or the database does not do it.
pub async fn change(
    connection: &mut PgConnection,
    changes: &[(AccountId, AccountChange)],
) -> Result<Changed, TableError> {
    let mut known = locked(connection, changes).await?;
    let mut sum = Changed::default();
    let mut written = Vec::new();
    for (account, change) in changes {
        let before = known.remove(account.as_str());
        let base = before.clone();
        let after = base
            .unwrap_or_else(|| AccountRecord::new(account.clone()))
            .with(change)?;
        match before {
            None => sum.created += 1,
            Some(before) if before == after => {
                sum.unchanged += 1;
                continue;
            }
            Some(_) => sum.changed += 1,
        }
        written.push(after);
    }
    // Also a statement that writes nothing has every worker read all tables again.
    if !written.is_empty() {
        write(connection, &written).await?;
    }
    Ok(sum)
}

/// In a fixed order, so that two who change the same accounts wait for each other, not in a circle.
async fn locked(
    connection: &mut PgConnection,
    changes: &[(AccountId, AccountChange)],
) -> Result<HashMap<String, AccountRecord>, TableError> {
    let ids: Vec<_> = changes
        .iter()
        .map(|(account, _)| account.as_str())
        .collect();
    let rows = sqlx::query_as!(
        Row,
        "SELECT account_id, budget_per_second, reserve_percent, quiet_hours, quiet_action,
            time_zone, windows
        FROM accounts WHERE account_id = ANY ($1) ORDER BY account_id FOR UPDATE",
        &ids as &[&str]
    );
    let rows = rows.fetch_all(connection).await?;
    let records = rows.into_iter().filter_map(Row::record);
    Ok(records
        .map(|record| (record.account.to_string(), record))
        .collect())
}

async fn write(connection: &mut PgConnection, records: &[AccountRecord]) -> sqlx::Result<()> {
    let ids: Vec<_> = records.iter().map(|it| it.account.as_str()).collect();
    let budgets = records.iter().map(|it| it.budget.map(stored_budget));
    let reserves = records.iter().map(|it| it.reserve.map(stored_reserve));
    let quiet: Vec<_> = records.iter().map(|it| it.quiet_hours).collect();
    let actions: Vec<_> = records.iter().map(|it| it.quiet_action.as_str()).collect();
    let zones: Vec<_> = records.iter().map(|it| it.time_zone.as_deref()).collect();
    let windows = records.iter().map(|it| Value::Object(it.windows.clone()));
    sqlx::query!(
        "INSERT INTO accounts (account_id, budget_per_second, reserve_percent, quiet_hours,
            quiet_action, time_zone, windows)
        SELECT * FROM unnest($1::text[], $2::integer[], $3::smallint[], $4::boolean[], $5::text[],
            $6::text[], $7::jsonb[])
        ON CONFLICT (account_id) DO UPDATE SET
            budget_per_second = excluded.budget_per_second,
            reserve_percent = excluded.reserve_percent,
            quiet_hours = excluded.quiet_hours,
            quiet_action = excluded.quiet_action,
            time_zone = excluded.time_zone,
            windows = excluded.windows,
            changed_at = now()",
        &ids as &[&str],
        &budgets.collect::<Vec<_>>() as &[Option<i32>],
        &reserves.collect::<Vec<_>>() as &[Option<i16>],
        &quiet,
        &actions as &[&str],
        &zones as &[Option<&str>],
        &windows.collect::<Vec<_>>(),
    )
    .execute(connection)
    .await?;
    Ok(())
}

fn stored_budget(budget: Budget) -> i32 {
    i32::try_from(budget.get()).expect("the largest budget is 10^9")
}

fn stored_reserve(reserve: Reserve) -> i16 {
    reserve.get().into()
}

/// Removes an account's row, with its caps and ceilings; `false` when there was none.
///
/// # Errors
/// When the database does not do it.
pub async fn remove(
    connection: &mut PgConnection,
    account: &AccountId,
) -> Result<bool, TableError> {
    let removed = sqlx::query!(
        "DELETE FROM accounts WHERE account_id = $1",
        account.as_str()
    );
    Ok(removed.execute(connection).await?.rows_affected() > 0)
}

/// Sees to it that an account has a row, which what belongs to it needs, and holds it until the
/// transaction ends, so that others who do so wait; says whether it had none.
///
/// # Errors
/// When the database does not do it.
pub async fn enrol(connection: &mut PgConnection, account: &AccountId) -> Result<bool, TableError> {
    let enrolled = sqlx::query!(
        "INSERT INTO accounts (account_id) VALUES ($1) ON CONFLICT DO NOTHING",
        account.as_str()
    );
    let is_new = enrolled.execute(&mut *connection).await?.rows_affected() > 0;
    let locked = sqlx::query!(
        "SELECT account_id FROM accounts WHERE account_id = $1 FOR NO KEY UPDATE",
        account.as_str()
    );
    locked.fetch_optional(connection).await?;
    Ok(is_new)
}

/// What happens to accounts that are not listed; `None`: what the settings say.
///
/// # Errors
/// When the database does not say.
pub async fn unknown(connection: &mut PgConnection) -> Result<Option<UnknownAccount>, TableError> {
    let stored = sqlx::query_scalar!("SELECT unknown_accounts FROM directory");
    let stored = stored.fetch_one(connection).await?;
    Ok(stored.as_deref().and_then(UnknownAccount::parse))
}

/// Lays down what happens to accounts that are not listed; `None`: what the settings say.
///
/// # Errors
/// When the database does not do it.
pub async fn set_unknown(
    connection: &mut PgConnection,
    policy: Option<UnknownAccount>,
) -> Result<(), TableError> {
    let policy = policy.map(UnknownAccount::as_str);
    sqlx::query!("UPDATE directory SET unknown_accounts = $1", policy)
        .execute(connection)
        .await?;
    Ok(())
}

/// Makes sure that all of these accounts have rows.
///
/// # Errors
/// [`TableError::NoAccount`], with the first that has none.
pub(super) async fn expect(
    connection: &mut PgConnection,
    accounts: impl Iterator<Item = &AccountId>,
) -> Result<(), TableError> {
    let ids: Vec<_> = accounts.map(AccountId::as_str).collect();
    let missing = sqlx::query_scalar!(
        r#"SELECT asked.id AS "id!" FROM unnest($1::text[]) AS asked (id)
        WHERE NOT EXISTS (SELECT FROM accounts WHERE account_id = asked.id)
        ORDER BY asked.id LIMIT 1"#,
        &ids as &[&str]
    );
    let missing = missing.fetch_optional(connection).await?;
    match missing.and_then(|id| AccountId::parse(&id).ok()) {
        None => Ok(()),
        Some(account) => Err(TableError::NoAccount(account)),
    }
}
