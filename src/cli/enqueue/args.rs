//! What the command is told, and the batch that it makes of it.

use std::path::{Path, PathBuf};

use crate::batch::{Batch, BatchId, Format, is_standard_input};
use crate::domain::{AccountId, Channel, Field, Origin, Priority, Region};

use super::plan::Choice;
use crate::cli::values::{account, channel, origin, priority, region};

const HELP: &str = "\
Examples:
  lanekeeper enqueue contacts.csv \\
      --account acme --channel sms --origin campaign --batch spring
        queue the rows of a spreadsheet saved as \"CSV UTF-8\", with at least
        the columns to and body
  lanekeeper enqueue contacts.csv … --dry-run
        check every row and count, without a broker
  lanekeeper enqueue contacts.csv … --resume
        go on where an interrupted run stopped
  lanekeeper enqueue numbers.csv … --body \"We open at nine.\"
        one text for all rows that have none
  lanekeeper enqueue contacts.csv … --region GB
        take 07700 900123 for a number of Great Britain; it is queued as
        +447700900123

The file is CSV (comma, semicolon or tab) or JSON lines, told from its first line:
  to,body
  +447700900123,See you at 7
or
  {\"to\":\"+447700900123\",\"body\":\"See you at 7\"}
  {\"to\":\"+447700900124\",\"content\":{\"template\":7}}
Fields of a row:
  to, and body or content    required
  channel, from, service_id, category, campaign_id, journey_id, priority
                             instead of the options of that name
  metadata, recipient_timezone, not_before, expires_at
                             see docs/PUBLISHING.md
  id, account_id, origin, batch_id, enqueued_at
                             belong to the batch, and may not stand in a row
  any other column of a CSV file goes to metadata, under its header's name

The job of the row on line N of the file gets the id BATCH-N. Workers recognise an id that they \
have sent and do not send it again while they remember it (claims.life_s). So use a new --batch \
for new content, also for rows that you have corrected.

How far a run has come is kept beside the file, in FILE.ACCOUNT.BATCH.lanekeeper.json (or \
--state). It holds no recipients. After an interruption --resume goes on from there: at most the \
2,000 rows that were on their way are queued a second time, byte for byte as before. A batch that \
was queued to its end is not queued again unless --restart is given; as long as neither the file \
nor the options have changed, its jobs keep their ids and the enqueued_at of the first run.

Exit codes:
  0    every good row is queued, now or by an earlier run
  1    stopped part-way, or never begun, by the broker or by a read or write
       that failed; the state says where: --resume
  2    wrong usage or settings, or a file that was refused as a whole; nothing
       was queued
  3    rows were rejected, and all others queued
  4    nothing was queued, somebody has to decide: an earlier run did not
       finish, the file or the options have changed since, or another run is
       at work
  130  stopped by Ctrl-C (SIGINT), 143 by SIGTERM: what was on its way is
       settled, the state says where it stopped: --resume. A second signal
       does not wait";

/// Queue a file of messages: CSV or JSON lines, one message per row.
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
    #[command(flatten)]
    defaults: Defaults,
    #[command(flatten)]
    pub(super) reading: Reading,
    #[command(flatten)]
    pub(super) course: Course,
    #[command(flatten)]
    pub(super) output: Output,
}

/// Fields for rows that have none of their own.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "For rows that name none")]
struct Defaults {
    /// The text
    #[arg(long, value_name = "TEXT")]
    body: Option<String>,
    /// The sender
    #[arg(long)]
    from: Option<String>,
    /// The priority: high, normal or low
    #[arg(long, value_parser = priority)]
    priority: Option<Priority>,
    /// The category
    #[arg(long)]
    category: Option<String>,
    /// The campaign
    #[arg(long)]
    campaign_id: Option<String>,
    /// The journey
    #[arg(long)]
    journey_id: Option<String>,
    /// The messaging service
    #[arg(long)]
    service_id: Option<String>,
}

/// How the file is read.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Reading")]
pub(super) struct Reading {
    /// The country of telephone numbers without a country code, instead of `jobs.default_region`
    #[arg(long, value_name = "COUNTRY", value_parser = region)]
    region: Option<Region>,
    /// csv or jsonl, where the first line misleads
    #[arg(long, value_parser = format)]
    pub(super) format: Option<Format>,
    /// Check the whole file first, and queue nothing when any row is bad
    #[arg(long)]
    pub(super) strict: bool,
    /// Queue a recipient as often as the file names it, not only for the first row
    #[arg(long)]
    pub(super) allow_duplicates: bool,
    /// Only check and count: needs no broker, queues nothing, leaves no state
    #[arg(long, conflicts_with_all = ["resume", "restart", "state"])]
    pub(super) dry_run: bool,
}

/// What to do about an earlier run.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Going on")]
pub(super) struct Course {
    /// Go on after the last line that an earlier run of this batch has finished
    #[arg(long, conflicts_with = "restart")]
    resume: bool,
    /// Begin again at the first row, whatever an earlier run of this batch has done
    #[arg(long)]
    restart: bool,
    /// Where to keep how far the run has come, instead of beside the file
    #[arg(long, value_name = "FILE")]
    pub(super) state: Option<PathBuf>,
}

/// What is shown.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(super) struct Output {
    /// Show at most so many rejected rows
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(super) max_errors: usize,
    /// Print one JSON object about the run, rejected rows included, and no progress
    #[arg(long)]
    pub(super) json: bool,
    /// Print nothing if all went well
    #[arg(long)]
    pub(super) quiet: bool,
}

impl Args {
    /// What all jobs share; `default_region` is that of the settings.
    #[must_use]
    pub fn batch(&self, default_region: Option<Region>) -> Batch {
        let defaults = &self.defaults;
        let given = [
            (Field::Body, &defaults.body),
            (Field::CampaignId, &defaults.campaign_id),
            (Field::JourneyId, &defaults.journey_id),
            (Field::From, &defaults.from),
            (Field::Category, &defaults.category),
            (Field::ServiceId, &defaults.service_id),
        ];
        let given = given
            .into_iter()
            .filter_map(|(field, value)| value.clone().map(|value| (field, value)));
        Batch {
            account: self.account.clone(),
            channel: Some(self.channel),
            origin: self.origin,
            id: self.batch.clone(),
            priority: defaults.priority,
            defaults: given.collect(),
            default_region: self.reading.region.or(default_region),
        }
    }

    /// What was chosen about an earlier run.
    pub(super) fn choice(&self) -> Option<Choice> {
        match &self.course {
            Course { resume: true, .. } => Some(Choice::Resume),
            Course { restart: true, .. } => Some(Choice::Restart),
            _ => None,
        }
    }

    /// Where the state is kept; nowhere for input that comes through a pipe and cannot be given
    /// again, unless a place is named.
    pub(super) fn state_path(&self) -> Option<PathBuf> {
        if self.course.state.is_some() {
            return self.course.state.clone();
        }
        let mut name = (!is_stream(&self.file))
            .then(|| self.file.file_name())??
            .to_owned();
        name.push(format!(
            ".{}.{}.lanekeeper.json",
            self.account,
            self.batch.as_str()
        ));
        Some(self.file.with_file_name(name))
    }
}

/// Whether it can be read only once: standard input, a pipe, a terminal.
pub(super) fn is_stream(path: &Path) -> bool {
    is_standard_input(path)
        || std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

fn format(text: &str) -> Result<Format, String> {
    let known = || Format::ALL.map(Format::as_str).join(", ");
    Format::parse(text).ok_or_else(|| format!("expected one of {}", known()))
}
