//! `lanekeeper enqueue`: a file of rows becomes jobs in the queues.

mod rows;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use futures_util::StreamExt as _;
use jiff::Timestamp;
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

pub use rows::{Batch, BatchId, RowError};

use crate::dispatch::ports::PublishError;
use crate::domain::{AccountId, Channel, Field, Job, Origin, Priority};
use crate::intake::{AmqpOptions, Feed, IntakeError};
use crate::settings::Settings;

/// Publishes that may be unconfirmed at a time.
const WINDOW: usize = 2_000;
/// How many chunks the window is divided into; each is published and confirmed as a whole.
const CHUNKS: usize = 4;
/// A line longer than this is not read to its end.
const LONGEST_LINE: u64 = 1024 * 1024;
/// How long the broker may take nothing before the rest is given up.
const PATIENCE: Duration = Duration::from_secs(30);
/// The pause before a chunk is tried again.
const PAUSE: Duration = Duration::from_millis(500);
/// How long taking leave of the broker may take.
const FAREWELL: Duration = Duration::from_secs(5);

/// Queue a file of messages, one JSON object per line with at least `to` and `body` or `content`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit codes:\n  \
    0  every row was queued\n  \
    1  the file could not be read, or the broker could not be reached or did not take every row\n  \
    2  wrong usage\n  \
    3  rows were rejected, and all others queued\n\n\
    The job on line N of the file gets the id BATCH-N. Given again, the same file makes the same jobs, \
    which workers recognise.")]
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
    /// The file cannot be opened.
    #[error("cannot open {path}: {source}")]
    Open {
        /// The file.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// The broker cannot be reached.
    #[error(transparent)]
    Broker(#[from] IntakeError),
}

/// What became of a batch.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Report {
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
        write!(f, "queued {}, rejected {}", self.queued, self.rejected)?;
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
    let input = open(&args.file)?;
    let feed = Feed::connect(options).await?;
    let report = enqueue(input, &batch, &feed, errors).await;
    feed.close(Instant::now() + FAREWELL).await;
    Ok(report)
}

fn open(path: &Path) -> Result<Box<dyn Read + Send>, EnqueueError> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin()));
    }
    match std::fs::File::open(path) {
        Ok(file) => Ok(Box::new(file)),
        Err(source) => Err(EnqueueError::Open {
            path: path.display().to_string(),
            source,
        }),
    }
}

/// Queues every good row of `input` and reports the others.
pub async fn enqueue(
    input: Box<dyn Read + Send>,
    batch: &Batch,
    feed: &Feed,
    errors: &mut (impl Write + Send),
) -> Report {
    let (sender, mut lines) = mpsc::channel(CHUNKS);
    // Ends by itself: with the input, or when nobody takes its chunks any more.
    drop(tokio::task::spawn_blocking(move || {
        read_lines(input, &sender);
    }));
    let mut report = Report::default();
    let chunks = futures_util::stream::poll_fn(|context| lines.poll_recv(context));
    let mut published = chunks
        .map(|chunk| async move { publish(feed, Chunk::of(batch, chunk, Timestamp::now())).await })
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

/// Lines of the input, numbered, or why there are no more.
type Lines = Result<Vec<(u64, Vec<u8>)>, String>;

fn read_lines(input: Box<dyn Read + Send>, chunks: &mpsc::Sender<Lines>) {
    let mut input = BufReader::new(input);
    let mut chunk = Vec::new();
    let mut number = 0;
    let end = loop {
        let mut line = Vec::new();
        number += 1;
        match (&mut input).take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(0) => break None,
            Ok(_) if line.len() as u64 == LONGEST_LINE => {
                break Some(format!("line {number} is longer than {LONGEST_LINE} bytes"));
            }
            Ok(_) => chunk.push((number, line)),
            Err(error) => break Some(format!("cannot read on: {error}")),
        }
        if chunk.len() >= WINDOW / CHUNKS {
            let full = std::mem::take(&mut chunk);
            if chunks.blocking_send(Ok(full)).is_err() {
                return;
            }
        }
    };
    let last = [Some(Ok(chunk)), end.map(Err)];
    for lines in last.into_iter().flatten() {
        // Nobody takes them after the batch was stopped.
        let _ = chunks.blocking_send(lines);
    }
}

/// Some rows, read.
#[derive(Default)]
struct Chunk {
    jobs: Vec<Job>,
    rejected: Vec<RowError>,
    last_line: u64,
    unreadable: Option<String>,
}

/// A chunk that was published as far as possible.
struct Done {
    chunk: Chunk,
    queued: u64,
    failed: Option<PublishError>,
}

impl Chunk {
    fn of(batch: &Batch, lines: Lines, now: Timestamp) -> Self {
        let mut chunk = Self::default();
        let lines = lines.unwrap_or_else(|reason| {
            chunk.unreadable = Some(reason);
            Vec::new()
        });
        for (number, line) in lines {
            chunk.last_line = number;
            let text = trim(&line, number);
            if text.is_empty() {
                continue;
            }
            match batch.job(number, text, now) {
                Ok(job) => chunk.jobs.push(job),
                Err(error) => chunk.rejected.push(error),
            }
        }
        chunk
    }
}

/// Without surrounding blanks, and on the first line without the byte order mark that some
/// programs begin a file with.
fn trim(line: &[u8], number: u64) -> &[u8] {
    let mark = (number == 1)
        .then(|| line.strip_prefix(b"\xef\xbb\xbf"))
        .flatten();
    mark.unwrap_or(line).trim_ascii()
}

/// Publishes a chunk, and what was not stored again, until the broker has taken nothing for too
/// long. What is published twice has the same id.
async fn publish(feed: &Feed, mut chunk: Chunk) -> Done {
    let mut jobs = std::mem::take(&mut chunk.jobs);
    let total = jobs.len();
    let mut progress = Instant::now();
    let mut failed = None;
    while !jobs.is_empty() {
        let results = feed.publish(&jobs).await;
        let before = jobs.len();
        let mut results = results.into_iter();
        failed = None;
        jobs.retain(|_| match results.next() {
            Some(Ok(())) => false,
            Some(Err(error)) => {
                failed = Some(error);
                true
            }
            None => true,
        });
        if jobs.len() < before {
            progress = Instant::now();
        } else if progress.elapsed() >= PATIENCE {
            break;
        }
        if !jobs.is_empty() {
            sleep(PAUSE).await;
        }
    }
    Done {
        chunk,
        queued: (total - jobs.len()) as u64,
        failed,
    }
}

impl Report {
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
