//! `lanekeeper check`: are the settings right, and does every service answer?

mod amqp;
mod carrier;
mod database;
mod queues;
mod reach;
mod redis;

use std::fmt;
use std::io::Write as _;
use std::process::ExitCode;

use futures_util::future::{OptionFuture, join_all};
use serde::Serialize;

use crate::cli::escape;
use crate::settings::{Settings, SettingsError};

/// How to report.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(after_help = "Exit codes:\n  \
    0  all is well\n  \
    1  a service cannot be used as it is set\n  \
    2  wrong usage, or wrong settings")]
pub struct Args {
    /// Print one JSON object instead of lines.
    #[arg(long)]
    json: bool,
}

/// How one thing that was looked at is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Ok,
    Fail,
    Note,
}

/// One line of the report.
#[derive(Debug, Serialize)]
struct Finding {
    status: Status,
    what: String,
    detail: String,
}

impl Finding {
    fn note(what: impl Into<String>, detail: &str) -> Self {
        Self {
            status: Status::Note,
            what: what.into(),
            detail: detail.to_owned(),
        }
    }

    /// What looking at a service gave: what it is, or why it cannot be used.
    fn of(what: impl Into<String>, result: Result<String, String>) -> Self {
        let (status, detail) = match result {
            Ok(detail) => (Status::Ok, detail),
            Err(detail) => (Status::Fail, detail),
        };
        Self {
            status,
            what: what.into(),
            detail,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = match self.status {
            Status::Ok => "ok",
            Status::Fail => "FAIL",
            Status::Note => "note",
        };
        write!(f, "{status:<4}  {:<16}  {}", self.what, self.detail)
    }
}

#[derive(Serialize)]
struct Report<'a> {
    ok: bool,
    checks: &'a [Finding],
}

/// Looks at the settings and at every service that they name. Nothing is queued or sent. The exit
/// code is 0 when all is well, 1 when a service cannot be used, and 2 when the settings cannot.
///
/// # Errors
/// When the report cannot be written.
pub async fn run(
    settings: Result<Settings, SettingsError>,
    args: Args,
) -> anyhow::Result<ExitCode> {
    let findings = match &settings {
        Err(error) => vec![Finding::of("settings", Err(error.to_string()))],
        Ok(settings) => look(settings).await,
    };
    let ok = findings
        .iter()
        .all(|finding| finding.status != Status::Fail);
    let mut out = std::io::stdout().lock();
    if args.json {
        let checks = &findings;
        writeln!(out, "{}", serde_json::to_string(&Report { ok, checks })?)?;
    } else {
        for finding in &findings {
            writeln!(out, "{}", escape::block(&finding.to_string()))?;
        }
    }
    Ok(match settings {
        Err(_) => super::USAGE.into(),
        Ok(_) if ok => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
    })
}

async fn look(settings: &Settings) -> Vec<Finding> {
    let carriers = settings.carriers.iter();
    let carriers = join_all(carriers.map(|(name, carrier)| carrier::look(name, carrier)));
    let database = OptionFuture::from(settings.database.as_ref().map(database::look));
    let (amqp, redis, database, carriers) = tokio::join!(
        amqp::look(settings),
        redis::look(&settings.redis),
        database,
        carriers
    );
    let valid = Finding::of("settings", Ok("valid".to_owned()));
    let mut findings = vec![valid, amqp, redis];
    findings.extend(database);
    findings.extend(carriers);
    // They would only push a failure out of sight.
    if findings.iter().all(|finding| finding.status == Status::Ok) {
        findings.extend(notes(settings));
    }
    findings
}

/// What is no fault, but should be known.
fn notes(settings: &Settings) -> Vec<Finding> {
    let delay = settings.lanes.shed_delay.as_millis();
    let prefix = &settings.amqp.prefix;
    let unused = settings
        .carriers
        .iter()
        .filter(|(_, one)| one.url_is_unused);
    let unused = unused.map(|(name, _)| {
        let detail = "url is set but unused, kind is sandbox";
        Finding::note(format!("carrier {name}"), detail)
    });
    let mut notes: Vec<Finding> = unused.collect();
    notes.push(Finding::note(
        "shed delay",
        &format!(
            "{delay} ms, where {prefix}.<lane>.delay is first declared; to change it later, stop the workers, \
             let those two queues run empty, delete them and start the workers again"
        ),
    ));
    notes.extend(settings.database.is_none().then(database::none));
    notes
}
