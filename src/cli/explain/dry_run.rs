//! `lanekeeper explain --dry-run`: asks everything that a worker would ask, and does nothing.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{print, show};
use crate::accounts::{self, AccountPolicy, Directory};
use crate::cli::escape;
use crate::clock::SystemClock;
use crate::dispatch::ports::{Clock as _, Door, Facts, JobRequest};
use crate::domain::{Decoded, Job};
use crate::intake::decode::{MAX_PAYLOAD, decode};
use crate::judgement::{Known, inquiry_of, judge, request_of};
use crate::meter::{RedisOptions, Standing, look};
use crate::postgres::{self, Database};
use crate::settings::Settings;

/// How long reading the accounts may take.
const LOAD_WITHIN: Duration = Duration::from_secs(10);

/// Judges the job in that file.
pub(super) async fn run(settings: &Settings, file: &Path, json: bool) -> anyhow::Result<ExitCode> {
    let body = read(file).with_context(|| format!("{} cannot be read", file.display()))?;
    let decoded = decode(body, settings.jobs.default_region).decoded;
    let database = open(settings)?;
    let mut policy = None;
    let (mut facts, mut request) = (None, None);
    let mut standing = Err(String::new());
    if let Decoded::Job(job) = &decoded {
        policy = policy_of(settings, database.as_ref(), job).await?;
        facts = facts_of(database.as_ref(), job).await?;
        request = policy
            .as_ref()
            .map(|policy| request_of(job, policy, Door::Worker));
        if let Some(request) = &request {
            standing = standing_of(settings, job, request).await;
        }
    }
    let known = Known {
        policy: policy.as_deref(),
        facts: facts.as_ref(),
        request: request.as_ref(),
        standing: standing.as_ref().map_err(Clone::clone),
        now: SystemClock.now(),
    };
    let judgement = judge(&decoded, &known);
    if json {
        print(&(escape::json(&judgement)? + "\n"))?;
    } else {
        print(&show::judgement(&judgement))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// No more than tells that it is too much.
fn read(file: &Path) -> io::Result<Bytes> {
    let most = MAX_PAYLOAD as u64 + 1;
    let mut body = Vec::new();
    if file == Path::new("-") {
        io::stdin().lock().take(most).read_to_end(&mut body)?;
    } else {
        File::open(file)?.take(most).read_to_end(&mut body)?;
    }
    Ok(body.into())
}

fn open(settings: &Settings) -> anyhow::Result<Option<Database>> {
    let Some(section) = &settings.database else {
        return Ok(None);
    };
    let database = Database::open(section);
    let database = database.map_err(|error| anyhow::anyhow!(postgres::explain(&error)))?;
    Ok(Some(database))
}

async fn policy_of(
    settings: &Settings,
    database: Option<&Database>,
    job: &Job,
) -> anyhow::Result<Option<Arc<AccountPolicy>>> {
    let Some(database) = database else {
        let directory = Directory::from_settings(settings);
        return Ok(directory.policy(&job.head.account));
    };
    let directory = Arc::new(Directory::of_database(settings));
    let stop = CancellationToken::new();
    let (kept, pool) = (Arc::clone(&directory), database.pool().clone());
    let stopped = stop.clone();
    let keeping = tokio::spawn(async move { accounts::keep(kept, &pool, stopped).await });
    let mut loaded = directory.loaded();
    let loaded = timeout(LOAD_WITHIN, loaded.wait_for(|loaded| *loaded)).await;
    stop.cancel();
    // Told to stop, it has nothing to say.
    let _ = keeping.await;
    if !matches!(loaded, Ok(Ok(_))) {
        bail!("the accounts cannot be read from the database; `lanekeeper check` says more");
    }
    Ok(directory.policy(&job.head.account))
}

async fn facts_of(database: Option<&Database>, job: &Job) -> anyhow::Result<Option<Facts>> {
    let Some(database) = database else {
        return Ok(None);
    };
    let inquiry = [inquiry_of(job)];
    let asking =
        async |connection: &mut sqlx::PgConnection| accounts::facts(connection, &inquiry).await;
    let facts = database.ask(asking).await;
    let facts =
        facts.context("opt-outs and holds cannot be looked up: a worker would send nothing")?;
    Ok(facts.into_iter().next())
}

async fn standing_of(
    settings: &Settings,
    job: &Job,
    request: &JobRequest,
) -> Result<Standing, String> {
    let options = RedisOptions {
        prefix: format!("{}:", settings.redis.prefix),
        connect_timeout: settings.redis.connect_timeout,
        ..RedisOptions::at(settings.redis.url.expose().as_str())
    };
    let standing = look(&options, &job.head.account, request).await;
    standing.map_err(|error| error.as_str().to_owned())
}
