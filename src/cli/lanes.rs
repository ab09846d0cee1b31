//! `lanekeeper lanes`: how the lanes of an account stand, or which accounts have queues of their own,
//! in the terminal.

mod hot;
mod show;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::tables::output::print;
use super::{escape, values};
use crate::accounts::{self, Directory};
use crate::activity::{RedisSeconds, Store, report};
use crate::clock::SystemClock;
use crate::domain::{AccountId, MeterMode};
use crate::overview::{AmqpDepths, Depths, HeldStore, History, OwnQueues, Sources};
use crate::postgres::Database;
use crate::settings::Settings;
use crate::telemetry::Telemetry;

/// How long the broker may take to say how long its queues are.
const BROKER_WITHIN: Duration = Duration::from_secs(1);

/// How long the accounts are waited for.
const DIRECTORY_WITHIN: Duration = Duration::from_secs(2);

const HELP: &str = "\
Examples:
  lanekeeper lanes
        the accounts that have queues of their own, because they kept meeting their limits
  lanekeeper lanes acme
        limit, counter and queue of each lane, and what became of the last minute's messages
  lanekeeper lanes --watch
        the same every second, until Ctrl-C
  lanekeeper lanes acme --json | jq '.lanes[] | {lane, shed_last_minute}'
        the same for a script; with --watch one object per line and second
  lanekeeper lanes --json | jq '.queues[] | {account_id, lane, queued, drained_in_seconds}'
        null is what is not known; drained_by says what drained_in_seconds goes by

Redis, the database and the broker are asked directly. Nothing is counted or changed.

Exit codes:
  0  here it is
  1  none of them could be asked; without ACCOUNT: the database could not
  2  wrong usage or settings";

/// Of which account.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// The account's id; without one, every account that has a queue of its own.
    #[arg(value_name = "ACCOUNT", value_parser = values::account)]
    account: Option<AccountId>,

    /// Again every second, until told to stop.
    #[arg(long)]
    watch: bool,

    /// Print JSON: one object, or with --watch one per line.
    #[arg(long)]
    json: bool,
}

/// What is printed of a look, and why it is a failure if nobody goes on watching.
struct Shown {
    text: String,
    failure: Option<&'static str>,
}

/// Runs the command.
///
/// # Errors
/// When a URL in the settings cannot be used.
pub async fn run(settings: Settings, args: Args) -> anyhow::Result<ExitCode> {
    let stop = CancellationToken::new();
    let tables = tables_of(&settings, &stop).await?;
    let store = seconds(&settings)?;
    let sources = sources(
        &settings,
        tables,
        Arc::clone(&store),
        &Telemetry::unexported(),
    )?;
    let mut history = History::default();
    loop {
        // Whether counts could be written, and the time by Redis's clock.
        let _ = store.leave(store.now_ms() / 1_000, &[]).await;
        let shown = match &args.account {
            Some(account) => of_account(&sources, account, &mut history, args.json).await?,
            None => of_hot_accounts(&sources, &settings, args.json).await?,
        };
        if let Some(why) = shown.failure.filter(|_| !args.watch) {
            super::complain(why);
            return Ok(ExitCode::FAILURE);
        }
        let text = if args.watch && !args.json {
            show::over(&shown.text)
        } else {
            shown.text
        };
        if !print(&text)? || !args.watch {
            return Ok(ExitCode::SUCCESS);
        }
        sleep(Duration::from_secs(1)).await;
    }
}

async fn of_account(
    sources: &Sources,
    account: &AccountId,
    history: &mut History,
    json: bool,
) -> anyhow::Result<Shown> {
    let lanes = sources.look(account, history).await.lanes;
    // Redis, the broker, and a database if there is one.
    let asked = 2 + usize::from(sources.own.are_possible());
    let nothing = lanes.missing.len() == asked;
    Ok(Shown {
        text: in_form(&lanes, json, show::lanes)?,
        failure: nothing
            .then_some("nothing of it answers: neither Redis nor the broker nor a database"),
    })
}

async fn of_hot_accounts(
    sources: &Sources,
    settings: &Settings,
    json: bool,
) -> anyhow::Result<Shown> {
    let view = sources.hot().await;
    Ok(Shown {
        text: in_form(&view, json, |view| hot::accounts(view, settings.hot.most))?,
        failure: view.queues.is_none().then_some(
            "the database, which lists the accounts with queues of their own, does not answer",
        ),
    })
}

/// As one line of JSON, or as people read it.
fn in_form<T: Serialize>(
    view: &T,
    json: bool,
    for_people: impl FnOnce(&T) -> String,
) -> anyhow::Result<String> {
    if json {
        return Ok(escape::json(view)? + "\n");
    }
    Ok(for_people(view))
}

/// What is written down of accounts.
pub(super) struct Tables {
    /// Their policies.
    directory: Arc<Directory>,
    /// What of them waits, and what is paused.
    held: HeldStore,
    /// Which have queues of their own.
    own: OwnQueues,
}

impl Tables {
    /// In a database, from which somebody keeps the directory up to date.
    pub(super) fn in_database(
        settings: &Settings,
        directory: Arc<Directory>,
        database: Database,
    ) -> Self {
        Self {
            directory,
            own: OwnQueues::in_database(database.clone(), settings.amqp.prefix.as_str()),
            held: HeldStore::Postgres(database),
        }
    }

    /// Without a database there is only what the settings say.
    fn of_settings(settings: &Settings) -> Self {
        Self {
            directory: Arc::new(Directory::from_settings(settings)),
            held: HeldStore::Nowhere,
            own: OwnQueues::none(),
        }
    }
}

/// Opens the database, if there is one, and waits a moment for the policies that stand there.
async fn tables_of(settings: &Settings, stop: &CancellationToken) -> anyhow::Result<Tables> {
    let Some(section) = &settings.database else {
        return Ok(Tables::of_settings(settings));
    };
    let database = Database::open(section).context("the database cannot be used")?;
    let directory = Arc::new(Directory::of_database(settings));
    let (kept, pool, stop) = (
        Arc::clone(&directory),
        database.pool().clone(),
        stop.clone(),
    );
    tokio::spawn(async move { accounts::keep(kept, &pool, stop).await });
    let mut loaded = directory.loaded();
    // Without an answer it says what the settings say.
    let _ = tokio::time::timeout(DIRECTORY_WITHIN, loaded.wait_for(|loaded| *loaded)).await;
    Ok(Tables::in_database(settings, directory, database))
}

/// Where all processes tell what they do.
///
/// # Errors
/// When the URL of Redis cannot be used.
fn seconds(settings: &Settings) -> anyhow::Result<Arc<Store>> {
    let redis = RedisSeconds::open(&settings.redis).context("redis.url cannot be used")?;
    Ok(Arc::new(Store::Redis(Box::new(redis))))
}

/// Tells all others what this process counts, until `counted`.
///
/// # Errors
/// When the URL of Redis cannot be used.
pub(super) fn tell(
    settings: &Settings,
    telemetry: &Telemetry,
    keepers: &mut JoinSet<()>,
    counted: &CancellationToken,
) -> anyhow::Result<Arc<Store>> {
    let seconds = seconds(settings)?;
    let (tally, counted) = (telemetry.tally().clone(), counted.clone());
    keepers.spawn(report(tally, Arc::clone(&seconds), counted));
    Ok(seconds)
}

/// What is shown of lanes where there are services.
///
/// # Errors
/// When the broker's URL cannot be used.
pub(super) fn sources(
    settings: &Settings,
    tables: Tables,
    store: Arc<Store>,
    telemetry: &Telemetry,
) -> anyhow::Result<Sources> {
    let broker = AmqpDepths::new(super::amqp::options(settings)?, BROKER_WITHIN)?;
    let Tables {
        directory,
        held,
        own,
    } = tables;
    Ok(Sources {
        directory,
        store,
        held,
        own,
        depths: Depths::Amqp(Box::new(broker)),
        clock: Arc::new(SystemClock),
        mode: mode_of(telemetry),
    })
}

/// Whose counter a process decides by.
pub(super) fn mode_of(telemetry: &Telemetry) -> Arc<dyn Fn() -> MeterMode + Send + Sync> {
    let telemetry = telemetry.clone();
    Arc::new(move || telemetry.counts().mode())
}
