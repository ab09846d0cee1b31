//! `lanekeeper enqueue`: a file of rows becomes jobs in the queues.

mod args;
mod keeper;
mod plan;
mod refusal;
mod report;
mod state;
mod state_file;
mod summary;
mod transfer;

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use jiff::Timestamp;
use tokio::time::Instant;

pub use args::Args;

use crate::batch::{Batch, BatchFile, FileError, RowOptions, Rows};
use crate::cli::{complain, escape};
use crate::enqueueing::Start;
use crate::intake::{AmqpOptions, Endpoint, Feed, IntakeError, Names};
use crate::settings::Settings;

use super::stop::Stop;

use super::progress::Progress;
use keeper::Keeper;
use plan::{Plan, plan};
use refusal::Refusal;
use report::{Report, Status};
use state::Identity;
use state_file::StateFile;
use transfer::{Errors, Outcome, Stopped, Transfer};

/// How long taking leave of the broker may take.
const FAREWELL: Duration = Duration::from_secs(5);

/// Runs the command: errors and progress go to standard error, the summary to standard output.
///
/// # Errors
/// When the operating system allows no handlers for signals.
pub async fn run(settings: Settings, args: &Args) -> anyhow::Result<ExitCode> {
    let stop = Stop::listen().context("cannot listen for signals")?;
    let command = Command {
        batch: args.batch(settings.jobs.default_region),
        options: super::amqp::options(&settings)?,
        args,
        stop: &stop,
        now: Timestamp::now,
    };
    let report = command.run().await.unwrap_or_else(|refusal| {
        let report = command.report();
        report.refused(&refusal)
    });
    show(&report, &args.output);
    Ok(report.exit_code.into())
}

/// Prints the report. What cannot be printed is lost; the exit code still says how it ended.
fn show(report: &Report, output: &args::Output) {
    let mut out = io::stdout().lock();
    if let Some(error) = &report.error {
        complain(error);
    }
    if output.json {
        if let Ok(line) = escape::json(report) {
            let _ = writeln!(out, "{line}");
        }
    } else if report.status == Status::Refused && report.rows == 0 {
        if let Some(next) = &report.next {
            eprintln!("next: {}", escape::block(next));
        }
    } else if report.exit_code != 0 || !output.quiet {
        // Names of files may hold anything.
        let _ = writeln!(out, "{}", escape::block(&report.to_string()));
    }
}

/// One run of the command.
struct Command<'a> {
    args: &'a Args,
    batch: Batch,
    options: AmqpOptions,
    stop: &'a Stop,
    now: fn() -> Timestamp,
}

impl Command<'_> {
    async fn run(&self) -> Result<Report, Refusal> {
        let state = self.args.state_path();
        if state.is_none() && self.args.choice().is_some() {
            return Err(Refusal::Usage(
                "--resume and --restart of piped input need the --state of its first run",
            ));
        }
        let file = self.open().await?;
        match state {
            _ if self.args.reading.dry_run => {
                let outcome = self.check(&file, (self.now)()).await?;
                Ok(self.report().checked(&outcome))
            }
            Some(path) => self.run_with_state(&file, &path).await,
            None => self.queue(&file, None).await,
        }
    }

    async fn run_with_state(&self, file: &BatchFile, path: &Path) -> Result<Report, Refusal> {
        let (state, earlier) = StateFile::open(path)?;
        let identity = Identity::of(file, &self.batch, self.row_options());
        let choice = self.args.choice();
        match plan(earlier, &identity, choice, path, (self.now)())? {
            Plan::Finished(earlier) => Ok(self.report().kept_in(path).already_queued(&earlier)),
            Plan::Queue(start) => {
                let kept = Kept {
                    state: &state,
                    identity,
                    start,
                };
                self.queue(file, Some(kept)).await
            }
        }
    }

    async fn queue(&self, file: &BatchFile, kept: Option<Kept<'_>>) -> Result<Report, Refusal> {
        let report = match &kept {
            Some(kept) => self.report().kept_in(kept.state.path()),
            None => self.report(),
        };
        let enqueued_at = kept
            .as_ref()
            .map_or_else(self.now, |kept| kept.start.enqueued_at);
        if self.args.reading.strict {
            let checked = self.check(file, enqueued_at).await?;
            if checked.counts.rejected > 0 {
                return Ok(report.not_strict_enough(&checked));
            }
        }
        // Again: what is wrong with the header must be known before anything is queued.
        let rows = self.rows(file, enqueued_at)?;
        let destination = destination(&self.options)?;
        let feed = tokio::select! {
            feed = Feed::connect(self.options.clone()) => feed?,
            signal = self.stop.asked() => return Err(Refusal::Signal(signal)),
        };
        let line = kept.as_ref().map_or(0, |kept| kept.start.mark.line);
        let keeper = kept.map(|kept| kept.begin(self.now)).transpose()?;
        let transfer = Transfer {
            feed: Some(&feed),
            keeper,
            ..self.transfer("queueing", file)
        };
        let outcome = transfer.run(rows, line).await;
        feed.close(Instant::now() + FAREWELL).await;
        let report = Report {
            destination: Some(destination),
            ..report
        };
        Ok(report.ran(&outcome))
    }

    /// Reads every row, and queues none.
    async fn check(&self, file: &BatchFile, enqueued_at: Timestamp) -> Result<Outcome, Refusal> {
        let rows = self.rows(file, enqueued_at)?;
        let outcome = self.transfer("checking", file).run(rows, 0).await;
        match outcome.stopped {
            None => Ok(outcome),
            Some(Stopped::Signal(signal)) => Err(Refusal::Signal(signal)),
            Some(stopped) => Err(Refusal::Unreadable(stopped)),
        }
    }

    fn rows(&self, file: &BatchFile, enqueued_at: Timestamp) -> Result<Rows, FileError> {
        file.rows(&self.batch, self.row_options(), enqueued_at)
    }

    fn row_options(&self) -> RowOptions {
        RowOptions {
            allow_duplicates: self.args.reading.allow_duplicates,
        }
    }

    fn transfer(&self, what: &'static str, file: &BatchFile) -> Transfer<'_> {
        let output = &self.args.output;
        Transfer {
            feed: None,
            keeper: None,
            stop: self.stop,
            progress: Progress::new(what, file.bytes(), !output.json && !output.quiet),
            errors: Errors {
                most: output.max_errors,
                written: !output.json,
            },
        }
    }

    /// Opens the file; a long one, or a pipe, may take its time.
    async fn open(&self) -> Result<BatchFile, Refusal> {
        let (path, hint) = (self.args.file.clone(), self.args.reading.format);
        let opening = tokio::task::spawn_blocking(move || BatchFile::open(&path, hint));
        tokio::select! {
            opened = opening => Ok(opened.expect("reading a file does not panic")?),
            signal = self.stop.asked() => Err(Refusal::Signal(signal)),
        }
    }

    fn report(&self) -> Report {
        let args = self.args;
        Report::new(&args.file, args.account.as_str(), args.batch.as_str())
    }
}

/// A state, and what is known from it.
struct Kept<'a> {
    state: &'a StateFile,
    identity: Identity,
    start: Start,
}

impl<'a> Kept<'a> {
    fn begin(self, now: fn() -> Timestamp) -> Result<Keeper<'a>, Refusal> {
        Ok(Keeper::begin(self.state, self.identity, self.start, now)?)
    }
}

/// `lanekeeper.send at 127.0.0.1:5672`.
fn destination(options: &AmqpOptions) -> Result<String, IntakeError> {
    let exchange = Names::new(&options.prefix)?.send();
    let address = Endpoint::parse(&options.url)?.address();
    let address = address
        .split_once("://")
        .map_or(&*address, |(_, rest)| rest);
    Ok(format!("{exchange} at {address}"))
}
