//! The command line: one module per sub-command, each wiring what it needs.

pub mod account;
mod age;
mod amqp;
pub mod api;
mod batches;
pub mod cap;
pub mod ceiling;
pub mod check;
pub mod dead;
pub mod demo;
pub mod dev;
pub mod enqueue;
mod escape;
pub mod explain;
pub mod hold;
mod hot;
pub mod key;
pub mod lanes;
pub mod migrate;
mod pipeline;
mod progress;
mod records;
mod stop;
pub mod suppression;
mod tables;
mod values;
pub mod worker;

use std::ffi::OsString;
use std::fmt::Display;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::ops::{logging, panics};
use crate::settings::{Log, LogLevel, Settings};

/// The exit code of a command that was used wrongly, as clap has it, or whose settings are wrong.
const USAGE: u8 = 2;

/// Sends queued messages to carriers, in two lanes under one budget.
///
/// Jobs arrive in two RabbitMQ queues, transactional and marketing. Workers take them, keep each
/// account within its budget by a counter in Redis, and hand them to a carrier. A part of each
/// budget is kept for the transactional lane.
#[derive(Debug, Parser)]
#[command(name = "lanekeeper", version, propagate_version = true, after_help = EXAMPLES)]
struct Cli {
    /// A TOML file with settings that differ from the defaults (or `LANEKEEPER_CONFIG`).
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Take jobs from the queues and send them, until told to stop.
    ///
    /// SIGTERM or Ctrl-C lets it finish what it has begun, within `worker.grace_s`; a second one
    /// hurries it. Run as many as you like: they share the budgets.
    #[command(after_help = "Exit codes:\n  \
        0  it was told to stop, and has\n  \
        1  it could not start, or the broker is in a state that only a person can mend\n  \
        2  wrong usage, or wrong settings")]
    Worker,
    /// Serve the HTTP API: messages over HTTP, by the same lanes and budgets, until told to stop.
    ///
    /// It needs RabbitMQ, Redis and PostgreSQL, as workers do, and a key for each client
    /// (`lanekeeper key create`). Run as many as you like. /docs has the reference.
    #[command(after_help = "Exit codes:\n  \
        0  it was told to stop, and has\n  \
        1  it could not start, or the database's schema is one that only a person can mend\n  \
        2  wrong usage, or wrong settings")]
    Api,
    /// Try all of it on this machine, without any service: the HTTP API and a worker in one process.
    ///
    /// Nothing is sent: the carrier is the sandbox. Everything is in memory, and gone with the
    /// process.
    Dev,
    /// See whether the settings are right and every service answers, one line each.
    ///
    /// Nothing is queued, sent or created on a service. Queues that exist are compared with the
    /// settings, and the sandbox's record file is opened, as a worker would open it.
    Check(check::Args),
    /// Watch two lanes share one budget, in this process alone: no service, nothing sent.
    Demo(demo::Args),
    /// Queue a file of messages, CSV or JSON lines, one message per row.
    ///
    /// An interrupted run can be resumed, and a finished one is not repeated by mistake.
    Enqueue(Box<enqueue::Args>),
    /// Look into the queue of messages that could not be read; replay them, or drop them.
    Dead(dead::Args),
    /// Tell what became of a job and why, or what would become of one now.
    Explain(explain::Args),
    /// Bring the database's schema up to date.
    Migrate(migrate::Args),
    /// Lay down budgets and quiet hours of accounts, in the database.
    Account(account::Args),
    /// Lay down how often one recipient may be written to.
    Cap(cap::Args),
    /// Lay down how much one sender number or messaging service may carry.
    Ceiling(ceiling::Args),
    /// Lay down who must not be written to.
    Suppression(suppression::Args),
    /// Make and revoke the keys by which programs are let in to the HTTP API.
    Key(key::Args),
    /// See how the lanes of an account stand, or which accounts have queues of their own.
    Lanes(lanes::Args),
    /// Hold back an account, campaign, journey or batch until it is resumed.
    Pause(hold::PauseArgs),
    /// Let go on what is paused.
    Resume(hold::ResumeArgs),
    /// End the jobs of an account, campaign, journey or batch.
    Cancel(hold::CancelArgs),
}

const EXAMPLES: &str = "\
Examples:
  lanekeeper demo
        watch what it does, without any service
  lanekeeper dev
        try the HTTP API and a worker in one process, without any service
  lanekeeper check
        see whether the settings are right and every service answers
  lanekeeper worker
        start a worker with the defaults: services on this machine, a sandbox for a carrier
  LANEKEEPER__LANES__BUDGET_PER_SECOND=250 lanekeeper worker
        change settings by environment: LANEKEEPER__SECTION__KEY
  lanekeeper worker --config /etc/lanekeeper.toml
        change settings by a file; config/default.toml in the source lists all of them

Logs go to standard error: text on a terminal, JSON otherwise.";

/// Runs the program.
#[must_use]
pub fn main(
    args: impl IntoIterator<Item = OsString>,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(help_or_error) => {
            let code = u8::try_from(help_or_error.exit_code()).unwrap_or(USAGE);
            // Nothing is left to do when not even this can be printed.
            let _ = help_or_error.print();
            return code.into();
        }
    };
    let settings = Settings::load(cli.config.as_deref(), environment);
    if let Ok(settings) = &settings {
        logging::start(log_of(&cli.command, settings.log));
    }
    let result = match (cli.command, settings) {
        (Command::Check(args), settings) => block_on(None, check::run(settings, args)),
        // It plays with the defaults, whatever the settings are.
        (Command::Demo(args), _) => block_on(None, demo::run(args)),
        (_, Err(error)) => {
            complain(&error);
            return USAGE.into();
        }
        (Command::Worker, Ok(settings)) => block_on(settings.worker.threads, worker::run(settings)),
        (Command::Api, Ok(settings)) => block_on(settings.worker.threads, api::run(settings)),
        (Command::Dev, Ok(settings)) => block_on(settings.worker.threads, dev::run(settings)),
        (Command::Enqueue(args), Ok(settings)) => block_on(None, enqueue::run(settings, &args)),
        (Command::Dead(args), Ok(settings)) => block_on(None, dead::run(settings, args)),
        (Command::Explain(args), Ok(settings)) => block_on(None, explain::run(&settings, args)),
        (Command::Migrate(args), Ok(settings)) => block_on(None, migrate::run(&settings, args)),
        (Command::Account(args), Ok(settings)) => block_on(None, account::run(settings, args)),
        (Command::Cap(args), Ok(settings)) => block_on(None, cap::run(settings, args)),
        (Command::Ceiling(args), Ok(settings)) => block_on(None, ceiling::run(settings, args)),
        (Command::Suppression(args), Ok(settings)) => {
            block_on(None, suppression::run(settings, args))
        }
        (Command::Key(args), Ok(settings)) => block_on(None, key::run(settings, args)),
        (Command::Lanes(args), Ok(settings)) => block_on(None, lanes::run(settings, args)),
        (Command::Pause(args), Ok(settings)) => block_on(None, hold::pause(settings, args)),
        (Command::Resume(args), Ok(settings)) => block_on(None, hold::resume(settings, args)),
        (Command::Cancel(args), Ok(settings)) => block_on(None, hold::cancel(settings, args)),
    };
    result.unwrap_or_else(|error| {
        complain(&format!("{error:#}"));
        ExitCode::FAILURE
    })
}

/// Says what went wrong. It may name what comes from outside, such as files.
fn complain(error: &(impl Display + ?Sized)) {
    eprintln!("error: {}", escape::block(&error.to_string()));
}

/// A command that tells its result itself needs no account of its connections, unless asked for one.
fn log_of(command: &Command, mut log: Log) -> Log {
    let tells_itself = !matches!(command, Command::Worker | Command::Api | Command::Check(_));
    if tells_itself && log.level == LogLevel::Info {
        log.level = LogLevel::Warn;
    }
    log
}

/// Runs a command on so many threads, or one per processor.
fn block_on(
    threads: Option<NonZeroUsize>,
    command: impl Future<Output = anyhow::Result<ExitCode>>,
) -> anyhow::Result<ExitCode> {
    // Two libraries bring a TLS implementation each; without a choice the first handshake panics.
    // A second choice in one process is refused, and then nothing is to be done.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = threads {
        runtime.worker_threads(threads.get());
    }
    let runtime = runtime.enable_all().build()?;
    let result = runtime.block_on(command);
    panics::nothing_more_to_lose();
    // A look-up of a host name may hang in a thread of its own: it must not keep the process.
    runtime.shutdown_background();
    result
}
