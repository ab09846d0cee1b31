//! The settings: defaults compiled in, a file over them, the environment over both.
//!
//! `config/default.toml` is the list of all settings and their documentation. Everything is read
//! and checked once, at start-up, into types that cannot hold a wrong value.

mod accounts;
mod amqp;
mod api;
mod carriers;
mod claims;
mod database;
mod environment;
mod error;
mod hot;
mod inbound;
mod jobs;
mod known;
mod lanes;
mod layers;
mod ledger;
mod log;
mod ops;
mod outcomes;
mod prefix;
mod reader;
mod redis;
mod secret;
mod urls;
mod worker;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

pub use accounts::{AccountBudget, Accounts, UnknownAccount};
pub use amqp::Amqp;
pub use api::Api;
pub use carriers::{
    BreakerSettings, Carrier, CarrierKind, Carriers, DEFAULT_CARRIER, Http, Sandbox,
};
pub use claims::Claims;
pub use database::Database;
pub use environment::{ENV_CONFIG, ENV_PREFIX, env_name};
pub use error::SettingsError;
pub use hot::Hot;
pub use inbound::Inbound;
pub use jobs::Jobs;
pub use lanes::Lanes;
pub use layers::DEFAULTS;
pub use ledger::{Ledger, LedgerRecipient};
pub use log::{Log, LogFormat, LogLevel};
pub use ops::Ops;
pub use outcomes::Outcomes;
pub use prefix::Prefix;
pub use redis::Redis;
pub use secret::Secret;
pub use urls::{AmqpUrl, CarrierUrl, PostgresUrl, RedisUrl, UrlError};
pub use worker::Worker;

use known::Known;
use layers::Table;
use reader::Section;

/// Every setting, checked. Its `Debug` form shows no secret.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `[amqp]`.
    pub amqp: Amqp,
    /// `[redis]`.
    pub redis: Redis,
    /// `[database]`; `None` where no URL is given.
    pub database: Option<Database>,
    /// `[claims]`.
    pub claims: Claims,
    /// `[lanes]`.
    pub lanes: Lanes,
    /// `[hot]`.
    pub hot: Hot,
    /// `[accounts]`.
    pub accounts: Accounts,
    /// `[jobs]`.
    pub jobs: Jobs,
    /// `[carriers.<name>]`.
    pub carriers: Carriers,
    /// `[outcomes]`.
    pub outcomes: Outcomes,
    /// `[ledger]`.
    pub ledger: Ledger,
    /// The HTTP API.
    pub api: Api,
    /// `[inbound]`.
    pub inbound: Inbound,
    /// `[ops]`.
    pub ops: Ops,
    /// `[worker]`.
    pub worker: Worker,
    /// `[log]`.
    pub log: Log,
}

impl Settings {
    /// Reads the settings: `file` over the defaults, and `environment` over both. When `file` is
    /// `None`, the environment's `LANEKEEPER_CONFIG` may name one.
    ///
    /// # Errors
    /// The first setting that cannot be used, named, with what was expected.
    pub fn load<Name, Text>(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (Name, Text)>,
    ) -> Result<Self, SettingsError>
    where
        Name: Into<OsString>,
        Text: Into<OsString>,
    {
        let pairs = environment.into_iter();
        let mut pairs: Vec<(OsString, OsString)> = pairs
            .map(|(name, text)| (name.into(), text.into()))
            .collect();
        // In a fixed order, so that the same mistakes always give the same error.
        pairs.sort();
        let named = pairs.iter().find(|(name, _)| name == ENV_CONFIG);
        let named = named.map(|(_, path)| Path::new(path));
        if named.is_some_and(|path| path.as_os_str().is_empty()) && file.is_none() {
            let name = ENV_CONFIG.to_owned();
            return Err(SettingsError::Empty { name });
        }
        let file = file.or(named).map(Path::to_path_buf);
        let table = layers::merged(file.as_deref(), pairs.into_iter(), &known()?)?;
        read_all(&table, &RefCell::default())
    }

    /// Every setting's path, such as `lanes.budget_per_second`; carriers' settings as those of the
    /// carrier `default`.
    ///
    /// # Errors
    /// Never, unless the defaults were broken.
    pub fn names() -> Result<Vec<String>, SettingsError> {
        Ok(known()?.paths().map(str::to_owned).collect())
    }
}

/// The settings that exist are those that reading the defaults asks for.
fn known() -> Result<Known, SettingsError> {
    let asked = RefCell::default();
    read_all(&layers::defaults()?, &asked)?;
    Ok(Known::new(asked.into_inner()))
}

fn read_all(table: &Table, asked: &RefCell<BTreeSet<String>>) -> Result<Settings, SettingsError> {
    let section = |name| Section::new(table, name, asked);
    let defaults = layers::defaults()?;
    let lanes = Lanes::read(&section("lanes"))?;
    Ok(Settings {
        amqp: Amqp::read(&section("amqp"))?,
        redis: Redis::read(&section("redis"))?,
        database: Database::read(&section("database"))?,
        claims: Claims::read(&section("claims"))?,
        accounts: Accounts::read(&section("accounts"), &lanes)?,
        lanes,
        hot: Hot::read(&section("hot"))?,
        jobs: Jobs::read(&section("jobs"))?,
        carriers: read_carriers(table, &defaults, asked)?,
        outcomes: Outcomes::read(&section("outcomes"))?,
        ledger: Ledger::read(&section("ledger"))?,
        api: Api::read(&section("api"))?,
        inbound: Inbound::read(&section("inbound"))?,
        ops: Ops::read(&section("ops"))?,
        worker: Worker::read(&section("worker"))?,
        log: Log::read(&section("log"))?,
    })
}

fn read_carriers(
    table: &Table,
    defaults: &Table,
    asked: &RefCell<BTreeSet<String>>,
) -> Result<Carriers, SettingsError> {
    let given = Section::new(table, "carriers", asked);
    let built_in = Section::new(defaults, "carriers", asked);
    Carriers::read(&given, &built_in)
}
