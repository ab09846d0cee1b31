//! `lanekeeper lanes`: how the lanes of an account stand, in the terminal.

mod show;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::tables::output::print;
use super::{escape, values};
use crate::accounts::{self, Directory};
use crate::activity::{RedisSeconds, Store, report};
use crate::clock::SystemClock;
use crate::domain::{AccountId, MeterMode};
use crate::overview::{AmqpDepths, Depths, HeldStore, History, LanesView, Sources};
use crate::postgres::Database;
use crate::settings::Settings;
use crate::telemetry::Telemetry;

/// How long the broker may take to say how long its queues are.
const BROKER_WITHIN: Duration = Duration::from_secs(1);

/// How long the accounts are waited for.
const DIRECTORY_WITHIN: Duration = Duration::from_secs(2);

const HELP: &str = "\
Examples:
  lanekeeper lanes acme
        limit, counter and queue of each lane, and what became of the last minute's messages
  lanekeeper lanes acme --watch
        the same every second, until Ctrl-C
  lanekeeper lanes acme --json | jq '.lanes[] | {lane, shed_last_minute}'
        the same for a script; with --watch one object per line and second

Redis, the database and the broker are asked directly. Nothing is counted or changed.

Exit codes:
  0  here it is
  1  none of them could be asked
  2  wrong usage or settings";

/// Of which account.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// The account's id.
    #[arg(value_name = "ACCOUNT", value_parser = values::account)]
    account: AccountId,

    /// Again every second, until told to stop.
    #[arg(long)]
    watch: bool,

    /// Print JSON: one object, or with --watch one per line.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// When a URL in the settings cannot be used.
pub async fn run(settings: Settings, args: Args) -> anyhow::Result<ExitCode> {
    let stop = CancellationToken::new();
    let (directory, held) = accounts_of(&settings, &stop).await?;
    let telemetry = Telemetry::unexported();
    let store = seconds(&settings)?;
    let sources = sources(&settings, directory, held, Arc::clone(&store), &telemetry)?;
    // Redis, the broker, and a database if there is one.
    let asked = 2 + usize::from(settings.database.is_some());
    let mut history = History::default();
    loop {
        // Whether counts could be written, and the time by Redis's clock.
        let _ = store.leave(store.now_ms() / 1_000, &[]).await;
        let look = sources.look(&args.account, &mut history).await;
        if look.lanes.missing.len() == asked && !args.watch {
            super::complain("nothing of it answers: neither Redis nor the broker nor a database");
            return Ok(ExitCode::FAILURE);
        }
        print(&text(&look.lanes, &args)?)?;
        if !args.watch {
            return Ok(ExitCode::SUCCESS);
        }
        sleep(Duration::from_secs(1)).await;
    }
}

fn text(lanes: &LanesView, args: &Args) -> anyhow::Result<String> {
    if args.json {
        return Ok(escape::json(lanes)? + "\n");
    }
    let text = show::lanes(lanes);
    Ok(if args.watch { show::over(&text) } else { text })
}

/// The policies of accounts, and where it is written down what waits.
async fn accounts_of(
    settings: &Settings,
    stop: &CancellationToken,
) -> anyhow::Result<(Arc<Directory>, HeldStore)> {
    let Some(section) = &settings.database else {
        let directory = Directory::from_settings(settings);
        return Ok((Arc::new(directory), HeldStore::Nowhere));
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
    Ok((directory, HeldStore::Postgres(database)))
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
    directory: Arc<Directory>,
    held: HeldStore,
    store: Arc<Store>,
    telemetry: &Telemetry,
) -> anyhow::Result<Sources> {
    let broker = AmqpDepths::new(super::amqp::options(settings)?, BROKER_WITHIN)?;
    Ok(Sources {
        directory,
        store,
        held,
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
