//! `lanekeeper migrate`: brings the database's schema up to date.

use std::io::Write as _;
use std::iter;
use std::process::ExitCode;

use anyhow::Context as _;
use serde::Serialize;
use sqlx::{Connection as _, PgConnection};

use super::escape;
use crate::postgres::{self, MigrationsError, Schema, Step};
use crate::settings::{self, Settings};

const HELP: &str = "\
Any number of processes may migrate at the same time: one does it, the others wait for it. All that \
is pending is applied in one transaction. A schema that is newer than this program is left as it is; \
after a roll-back the older program works with it. Behind PgBouncer, give the URL of PostgreSQL \
itself: a migration may take longer than PgBouncer lets a query run.

Workers do the same when they start, where database.migrate is true. The user of the URL comes to \
own the tables; workers need the same user, because they make and drop the ledger's partitions.

Examples:
  lanekeeper migrate --dry-run
        what would be applied
  LANEKEEPER__DATABASE__URL=postgres://lanekeeper:secret@db/lanekeeper lanekeeper migrate
        bring that database up to date

Exit codes:
  0  the schema is up to date; with --dry-run: it was looked at
  1  the database cannot be used, or a migration failed: nothing was changed
  2  wrong usage or settings, or database.url is not set";

/// How to migrate.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Only show what would be applied.
    #[arg(long)]
    dry_run: bool,

    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

/// What was found and done.
#[derive(Debug, Serialize)]
struct Report {
    dry_run: bool,
    /// What this run applied.
    applied: Vec<Step>,
    /// What had been applied before.
    already_applied: Vec<Step>,
    /// What is not applied.
    pending: Vec<Step>,
    /// What a newer release has applied.
    unknown: Vec<Step>,
}

/// Runs the command.
///
/// # Errors
/// When the database cannot be used, or a migration fails.
pub async fn run(settings: &Settings, args: Args) -> anyhow::Result<ExitCode> {
    let Some(database) = &settings.database else {
        super::complain(
            "there is no database: set database.url, for example by \
             LANEKEEPER__DATABASE__URL=postgres://user:password@host:5432/database",
        );
        return Ok(super::USAGE.into());
    };
    let report = report(database, args.dry_run).await;
    let report = report.with_context(|| database.url.to_string())?;
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", escape::json(&report)?)?;
    } else {
        write!(out, "{}", table(&report, &database.url.to_string()))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn report(database: &settings::Database, dry_run: bool) -> Result<Report, MigrationsError> {
    let mut connection = postgres::connect(database).await?;
    let report = look_or_migrate(&mut connection, dry_run).await;
    // What is done is committed.
    let _ = connection.close().await;
    report
}

async fn look_or_migrate(
    connection: &mut PgConnection,
    dry_run: bool,
) -> Result<Report, MigrationsError> {
    let applied = if dry_run {
        Vec::new()
    } else {
        postgres::migrate(connection).await?
    };
    let schema = Schema::look(connection).await?;
    schema.refuse_changed()?;
    let before = |step: &Step| !applied.contains(step);
    Ok(Report {
        dry_run,
        already_applied: schema.applied.into_iter().filter(before).collect(),
        applied,
        pending: schema.pending,
        unknown: schema.unknown,
    })
}

fn table(report: &Report, url: &str) -> String {
    let states = [
        ("was there", &report.already_applied),
        ("applied now", &report.applied),
        ("pending", &report.pending),
        (
            "unknown here, of a newer release; left alone",
            &report.unknown,
        ),
    ];
    let mut rows: Vec<_> = states
        .iter()
        .flat_map(|(state, steps)| steps.iter().map(move |step| (step, *state)))
        .collect();
    rows.sort_by_key(|(step, _)| step.version);
    let names = rows.iter().map(|(step, _)| escape::line(&step.description));
    let names: Vec<_> = names.collect();
    let width = names.iter().map(|name| name.chars().count()).max();
    let width = width.unwrap_or(0).max("MIGRATION".len());
    let head = format!("VERSION  {:<width$}  STATE", "MIGRATION");
    let lines = rows.iter().zip(names);
    let lines =
        lines.map(|((step, state), name)| format!("{:>7}  {name:<width$}  {state}", step.version));
    let lines: Vec<_> = iter::once(head).chain(lines).collect();
    format!("{url}: {}\n\n{}\n", title(report), lines.join("\n"))
}

fn title(report: &Report) -> String {
    let migrations = |steps: &[Step]| match steps.len() {
        1 => "1 migration".to_owned(),
        count => format!("{count} migrations"),
    };
    if !report.pending.is_empty() {
        format!("{} would be applied", migrations(&report.pending))
    } else if report.applied.is_empty() {
        "the schema is up to date".to_owned()
    } else {
        format!("{} applied", migrations(&report.applied))
    }
}
