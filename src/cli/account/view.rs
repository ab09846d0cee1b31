//! An account with all that belongs to it, as it is shown.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::accounts::tables::accounts::{self, AccountRecord};
use crate::accounts::tables::caps::{self, CapRecord};
use crate::accounts::tables::ceilings::{self, CeilingRecord};
use crate::accounts::tables::holds::{self, HoldRecord};
use crate::accounts::tables::suppressions;
use crate::accounts::{HoldKind, QuietPolicy};
use crate::cli::cap::CapLine;
use crate::cli::ceiling::CeilingLine;
use crate::cli::hold::HoldLine;
use crate::cli::tables::problem::Problem;
use crate::cli::tables::session::Session;
use crate::domain::{AccountId, Ceilings, Channel, Lane};
use crate::settings::{AccountBudget, Settings};

/// That an account has no row.
pub(super) fn no_such_account(account: &AccountId) -> Problem {
    Problem::NotThere(format!(
        "no such account: {account}; `lanekeeper account list` shows what there is, and \
         `lanekeeper account unknown` what happens to others"
    ))
}

/// An account's row, with what it leaves to the settings filled in.
#[derive(Debug, Serialize)]
pub(super) struct AccountLine<'a> {
    pub(super) account_id: &'a str,
    pub(super) budget_per_second: u32,
    pub(super) own_budget: bool,
    pub(super) reserve_percent: u8,
    pub(super) own_reserve: bool,
    pub(super) transactional_ceiling: u32,
    pub(super) marketing_ceiling: u32,
    pub(super) quiet_hours: bool,
    pub(super) quiet_action: &'static str,
    pub(super) time_zone: Option<&'a str>,
    /// Of every channel that has one while there are quiet hours.
    pub(super) windows: BTreeMap<&'static str, String>,
    /// What is stored and cannot be read, so that nothing is sent.
    pub(super) fault: Option<String>,
}

impl<'a> AccountLine<'a> {
    pub(super) fn of(record: &'a AccountRecord, settings: &Settings) -> Self {
        let own = budget_of(record, settings);
        let ceilings = Ceilings::of(own.budget, own.reserve);
        let policy = record.quiet_policy();
        Self {
            account_id: record.account.as_str(),
            budget_per_second: own.budget.get(),
            own_budget: record.budget.is_some(),
            reserve_percent: own.reserve.get(),
            own_reserve: record.reserve.is_some(),
            transactional_ceiling: ceilings.of_lane(Lane::Transactional),
            marketing_ceiling: ceilings.of_lane(Lane::Marketing),
            quiet_hours: record.quiet_hours,
            quiet_action: record.quiet_action.as_str(),
            time_zone: record.time_zone.as_deref(),
            windows: windows_of(&policy),
            fault: policy.fault().map(str::to_owned),
        }
    }

    pub(super) fn quiet_hours_in_short(&self) -> String {
        match (&self.fault, self.quiet_hours) {
            (Some(_), _) => "cannot be read".to_owned(),
            (None, true) => format!("on, {}", self.quiet_action),
            (None, false) => "off".to_owned(),
        }
    }
}

fn budget_of(record: &AccountRecord, settings: &Settings) -> AccountBudget {
    let overrides = &settings.accounts.overrides;
    let base = overrides.get(&record.account).copied();
    let base = base.unwrap_or(AccountBudget {
        budget: settings.lanes.budget,
        reserve: settings.lanes.reserve,
    });
    AccountBudget {
        budget: record.budget.unwrap_or(base.budget),
        reserve: record.reserve.unwrap_or(base.reserve),
    }
}

fn windows_of(policy: &QuietPolicy) -> BTreeMap<&'static str, String> {
    let QuietPolicy::On { windows, .. } = policy else {
        return BTreeMap::new();
    };
    let window = |channel: Channel| Some((channel.as_str(), windows.get(channel)?.to_string()));
    Channel::ALL.into_iter().filter_map(window).collect()
}

/// An account with all that belongs to it.
pub(super) struct View {
    record: AccountRecord,
    caps: Vec<CapRecord>,
    ceilings: Vec<CeilingRecord>,
    /// The hold on the account as a whole.
    pub(super) hold: Option<HoldRecord>,
    pub(super) opt_outs: u64,
}

#[derive(Serialize)]
pub(super) struct ViewLine<'a> {
    #[serde(flatten)]
    pub(super) account: AccountLine<'a>,
    pub(super) caps: Vec<CapLine<'a>>,
    pub(super) ceilings: Vec<CeilingLine<'a>>,
    pub(super) hold: Option<HoldLine<'a>>,
    pub(super) opt_outs: u64,
}

impl View {
    pub(super) async fn read(session: &mut Session, account: &AccountId) -> Result<Self, Problem> {
        let connection = &mut session.connection;
        let record = accounts::find(connection, account).await?;
        let holds = holds::list(connection, Some(account)).await?;
        Ok(Self {
            record: record.ok_or_else(|| no_such_account(account))?,
            caps: caps::list(connection, Some(account)).await?,
            ceilings: ceilings::list(connection, Some(account)).await?,
            hold: holds
                .into_iter()
                .find(|hold| hold.on.kind == HoldKind::Account),
            opt_outs: suppressions::count(connection, account, None).await?,
        })
    }

    /// Caps and ceilings.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.caps.len() as u64, self.ceilings.len() as u64)
    }

    pub(super) fn line<'a>(&'a self, settings: &Settings) -> ViewLine<'a> {
        ViewLine {
            account: AccountLine::of(&self.record, settings),
            caps: self.caps.iter().map(CapLine::from).collect(),
            ceilings: self.ceilings.iter().map(CeilingLine::from).collect(),
            hold: self.hold.as_ref().map(HoldLine::from),
            opt_outs: self.opt_outs,
        }
    }
}
