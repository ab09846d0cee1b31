//! `lanekeeper enqueue`: a file of rows becomes jobs in the queues.

mod chunks;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use jiff::Timestamp;
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::time::Instant;

use chunks::{CHUNKS, Chunk, Done, publish, read_rows};

use crate::batch::{Batch, BatchFile, BatchId, FileError, RowOptions, Rows};
use crate::dispatch::ports::PublishError;
use crate::domain::{AccountId, Channel, Field, Origin, Priority};
use crate::intake::{AmqpOptions, Endpoint, Feed, IntakeError, Names, Verdict};
use crate::settings::Settings;

/// How long taking leave of the broker may take.
const FAREWELL: Duration = Duration::from_secs(5);

const HELP: &str = "\
A row:
  {\"to\":\"+447700900123\",\"body\":\"Your table is booked\",\"metadata\":{\"table\":7}}
Fields of a row:
  to, and body or content    required
  channel, from, service_id, category, campaign_id, journey_id, priority
                             instead of the options of that name
  metadata, recipient_timezone, not_before, expires_at
                             see docs/ARCHITECTURE.md; id, account_id, origin, batch_id and
                             enqueued_at belong to the batch and may not stand in a row

The job on line N of the file gets the id BATCH-N. Given again, the same file makes the same jobs,
which workers recognise and do not send again. Use a new batch for new content: a changed line under
an old batch is not sent while the first one is remembered (claims.life_s).

Exit codes:
  0  every row was queued
  1  the file could not be read, or the broker could not be reached or did not take every row
  2  wrong usage or settings, or the input is not one JSON object per line; nothing was queued
  3  rows were rejected, and all others queued";

/// Queue a file of messages, one JSON object per line with at least `to` and `body` or `content`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// The file, or - for standard input
    pub file: PathBuf,
    /// The account that sends
    #[arg(long, value_parser = account)]
    pub account: AccountId,
    /// The channel of rows that name none
    #[arg(long, value_parser = channel)]
    pub channel: Channel,
    /// Where the messages come from: campaign, journey or api
    #[arg(long, value_parser = origin)]
    pub origin: Origin,
    /// The batch's id
    #[arg(long, value_parser = BatchId::parse)]
    pub batch: BatchId,
    /// The campaign
    #[arg(long)]
    pub campaign_id: Option<String>,
    /// The journey
    #[arg(long)]
    pub journey_id: Option<String>,
    /// The priority of rows that name none: high, normal or low
    #[arg(long, value_parser = priority)]
    pub priority: Option<Priority>,
    /// The sender of rows that name none
    #[arg(long)]
    pub from: Option<String>,
    /// The category of rows that name none
    #[arg(long)]
    pub category: Option<String>,
    /// The messaging service of rows that name none
    #[arg(long)]
    pub service_id: Option<String>,
}

impl Args {
    /// What all jobs share.
    #[must_use]
    pub fn batch(&self, options: &AmqpOptions) -> Batch {
        let given = [
            (Field::CampaignId, &self.campaign_id),
            (Field::JourneyId, &self.journey_id),
            (Field::From, &self.from),
            (Field::Category, &self.category),
            (Field::ServiceId, &self.service_id),
        ];
        let defaults = given
            .into_iter()
            .filter_map(|(field, value)| value.clone().map(|value| (field, value)));
        Batch {
            account: self.account.clone(),
            channel: self.channel,
            origin: self.origin,
            id: self.batch.clone(),
            priority: self.priority,
            defaults: defaults.collect(),
            default_region: options.default_region,
        }
    }
}

fn account(text: &str) -> Result<AccountId, String> {
    AccountId::parse(text).map_err(|error| error.to_string())
}

fn channel(text: &str) -> Result<Channel, String> {
    let known = || Channel::ALL.map(Channel::as_str).join(", ");
    Channel::parse(text).ok_or_else(|| format!("expected one of {}", known()))
}

fn origin(text: &str) -> Result<Origin, String> {
    let known = || Origin::ALL.map(Origin::as_str).join(", ");
    Origin::parse(text).ok_or_else(|| format!("expected one of {}", known()))
}

fn priority(text: &str) -> Result<Priority, String> {
    let known = || Priority::ALL.map(Priority::as_str).join(", ");
    Priority::parse(text).ok_or_else(|| format!("expected one of {}", known()))
}

/// Why a batch could not be queued, or not all of it.
#[derive(Debug, Error)]
pub enum EnqueueError {
    /// The file cannot be read, or is none that could be queued.
    #[error(transparent)]
    File(#[from] FileError),
    /// The broker cannot be reached.
    #[error("{0}{advice}", advice = advice(.0))]
    Broker(IntakeError),
}

impl From<IntakeError> for EnqueueError {
    fn from(error: IntakeError) -> Self {
        Self::Broker(error)
    }
}

fn advice(error: &IntakeError) -> &'static str {
    match error.verdict() {
        Verdict::Retry => "; `lanekeeper check` says what is reachable",
        Verdict::GiveUp => "",
    }
}

/// What became of a batch.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The exchange and the broker, without user and password; empty when not known.
    pub destination: String,
    /// Rows that the broker has stored.
    pub queued: u64,
    /// Rows that are no jobs.
    pub rejected: u64,
    /// Up to this line every good row is stored.
    pub stored_to_line: u64,
    /// What stopped the batch before its end.
    pub stopped_by: Option<String>,
}

impl Report {
    /// The exit code that says so.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self {
                stopped_by: Some(_),
                ..
            } => 1,
            Self { rejected, .. } if *rejected > 0 => 3,
            _ => 0,
        }
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "queued {}", self.queued)?;
        if !self.destination.is_empty() {
            write!(f, " to {}", self.destination)?;
        }
        write!(f, ", rejected {}", self.rejected)?;
        if let Some(reason) = &self.stopped_by {
            let line = self.stored_to_line;
            write!(f, "; stopped: {reason}; complete up to line {line}")?;
            f.write_str(": give the same file again to queue the rest")?;
        }
        Ok(())
    }
}

/// Runs the command: row errors go to standard error, the report to standard output.
///
/// # Errors
/// When nothing could be done at all.
pub async fn run(settings: Settings, args: Args) -> anyhow::Result<ExitCode> {
    let options = super::amqp::options(&settings)?;
    let report = queue_file(&args, options, &mut io::stderr()).await?;
    if report.is_of_nothing() {
        eprintln!("note: the input holds no rows");
    }
    println!("{report}");
    Ok(report.exit_code().into())
}

/// The command, apart from where it takes its settings from and what it ends with. Row errors go
/// to `errors`, one per line.
///
/// # Errors
/// When nothing could be done at all.
pub async fn queue_file(
    args: &Args,
    options: AmqpOptions,
    errors: &mut (impl Write + Send),
) -> Result<Report, EnqueueError> {
    let batch = args.batch(&options);
    let file = open(&args.file)?;
    let options_of_rows = RowOptions {
        allow_duplicates: true,
    };
    let rows = file.rows(&batch, options_of_rows, Timestamp::now())?;
    let destination = destination(&options)?;
    let feed = Feed::connect(options).await?;
    let mut report = enqueue(rows, &feed, errors).await;
    report.destination = destination;
    feed.close(Instant::now() + FAREWELL).await;
    Ok(report)
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

fn open(path: &Path) -> Result<BatchFile, FileError> {
    if path == Path::new("-") {
        return BatchFile::spool(io::stdin(), None);
    }
    BatchFile::open(path, None)
}

/// Queues every good row and reports the others.
pub async fn enqueue(rows: Rows, feed: &Feed, errors: &mut (impl Write + Send)) -> Report {
    let (sender, mut lines) = mpsc::channel(CHUNKS);
    // Ends by itself: with the input, or when nobody takes its chunks any more.
    drop(tokio::task::spawn_blocking(move || {
        read_rows(rows, &sender);
    }));
    let mut report = Report::default();
    let chunks = stream::poll_fn(|context| lines.poll_recv(context));
    let mut published = chunks
        .map(|chunk| async move { publish(feed, Chunk::of(chunk)).await })
        .buffered(CHUNKS);
    while let Some(done) = published.next().await {
        for error in &done.chunk.rejected {
            // Where the errors cannot be shown they are still counted.
            let _ = writeln!(errors, "{error}");
        }
        report.add(&done);
        if report.stopped_by.is_some() {
            break;
        }
    }
    report
}

impl Report {
    /// Whether the input was read to its end and had no rows.
    fn is_of_nothing(&self) -> bool {
        self.queued == 0 && self.rejected == 0 && self.stopped_by.is_none()
    }

    fn add(&mut self, done: &Done) {
        self.queued += done.queued;
        self.rejected += done.chunk.rejected.len() as u64;
        let failed = done.failed.as_ref().map(PublishError::to_string);
        let reason = failed.or_else(|| done.chunk.unreadable.clone());
        match reason {
            Some(reason) => self.stopped_by = Some(reason),
            None => self.stored_to_line = self.stored_to_line.max(done.chunk.last_line),
        }
    }
}
