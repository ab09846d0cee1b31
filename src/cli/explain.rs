//! `lanekeeper explain`: what became of a job and why, or what would become of one now.

mod dry_run;
mod show;
mod story;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use sqlx::Connection as _;

use super::{escape, values};
use crate::clock::SystemClock;
use crate::dispatch::ports::Clock as _;
use crate::domain::{AccountId, JobId, Region};
use crate::ledger;
use crate::postgres;
use crate::settings::{self, Settings};

use story::Story;

const HELP: &str = "\
Examples:
  lanekeeper explain order-4711-otp
        what became of the job, or of several if several accounts have one of that id
  lanekeeper explain order-4711-otp --account acme --json
        the same for a script
  lanekeeper explain --dry-run job.json
        what a worker would do with that job now, gate by gate; nothing is sent,
        counted or written
  jq -c .job row.json | lanekeeper explain --dry-run -
        the same for a job from standard input

A job that is queued, or in the hands of a worker, is not known here yet. One that could not be read \
is in the dead queue: `lanekeeper dead list`.

Exit codes:
  0  it is known; with --dry-run: here is what would happen
  1  nothing is known of it, or the database could not be asked
  2  wrong usage or settings, or database.url is not set";

/// Which job.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// The job's id.
    #[arg(value_name = "ID", value_parser = job_id, required_unless_present = "dry_run")]
    id: Option<JobId>,

    /// Only the job of this account.
    #[arg(long, value_parser = values::account)]
    account: Option<AccountId>,

    /// Instead: what would become of the job in this file, as JSON; `-` is standard input.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["id", "account"])]
    dry_run: Option<PathBuf>,

    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

fn job_id(text: &str) -> Result<JobId, String> {
    JobId::parse(text).map_err(|error| error.to_string())
}

/// Runs the command.
///
/// # Errors
/// When the file cannot be read, or the database cannot be asked.
pub async fn run(settings: &Settings, args: Args) -> anyhow::Result<ExitCode> {
    match (args.id, args.dry_run) {
        (Some(id), _) => tell(settings, &id, args.account.as_ref(), args.json).await,
        (None, Some(file)) => dry_run::run(settings, &file, args.json).await,
        (None, None) => Ok(super::USAGE.into()),
    }
}

async fn tell(
    settings: &Settings,
    id: &JobId,
    account: Option<&AccountId>,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let Some(database) = &settings.database else {
        super::complain(
            "there is no database, so nothing is written down about jobs: set database.url, for \
             example by LANEKEEPER__DATABASE__URL=postgres://user:password@host:5432/database",
        );
        return Ok(super::USAGE.into());
    };
    let region = settings.jobs.default_region;
    let story = look_up(database, id, account, region).await;
    let story = story
        .map_err(|error| anyhow::anyhow!(postgres::explain(&error)))
        .with_context(|| database.url.to_string())?;
    let found = !story.jobs.is_empty();
    if json {
        print(&(escape::json(&story)? + "\n"))?;
    } else if found {
        print(&show::story(&story, SystemClock.now()))?;
    } else {
        super::complain(&show::nothing_known(&story, settings));
    }
    Ok(if found {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

async fn look_up(
    database: &settings::Database,
    id: &JobId,
    account: Option<&AccountId>,
    region: Option<Region>,
) -> Result<Story, sqlx::Error> {
    let mut connection = postgres::connect(database).await?;
    let account = account.map(AccountId::as_str);
    // First what waits: a job that ends meanwhile is then found in both places, and not in none.
    let waiting = ledger::waiting(&mut connection, id.as_str(), account).await?;
    let ends = ledger::entries(&mut connection, id.as_str(), account).await?;
    // All there was to ask has been answered.
    let _ = connection.close().await;
    Ok(Story::of(id, ends, waiting, region))
}

/// Writes to standard output. Whoever has closed it wants no more.
fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(why) if why.kind() != std::io::ErrorKind::BrokenPipe => Err(why.into()),
        _ => Ok(()),
    }
}
