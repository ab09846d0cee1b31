//! `lanekeeper dead drop`: away for good.

use std::io::{BufRead as _, IsTerminal as _, stdin};
use std::path::PathBuf;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::intake::dead::{DeadQueue, Fate};

use super::problem::Problem;
use super::report::Report;
use super::save::Save;
use super::select::{Ages, Choice, Selection};
use super::{Chosen, choose};

/// What to drop, and how.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub choice: Choice,
    #[command(flatten)]
    pub ages: Ages,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// First append each message to this file, as a line of JSON with its body
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Print the report as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Drops the messages, when that is confirmed.
pub(super) async fn run(
    args: Args,
    queue: &DeadQueue,
    stop: &CancellationToken,
    now: Timestamp,
) -> Result<u8, Problem> {
    if !args.yes && !stdin().is_terminal() {
        return Err(Problem::Usage(
            "dropping is for good: without a terminal to ask on, give --yes".to_owned(),
        ));
    }
    let mut save = args.save.as_deref().map(Save::open).transpose()?;
    let Chosen { selection, missing } = choose(args.choice, args.ages, queue, now).await?;
    let mut report = Report {
        action: "drop",
        not_found: missing,
        ..Report::default()
    };
    if !args.yes && !confirmed(&selection, queue, stop).await? {
        report.stopped_by = Some("not confirmed".to_owned());
        return report.show(args.json);
    }
    let mut unsaved = None;
    let passed = queue.pass(|letter| {
        if unsaved.is_some() || !selection.holds(&letter.facts) {
            report.unknown_age += u64::from(selection.misses_for_its_age(&letter.facts));
            return Fate::Stay;
        }
        report.matched += 1;
        if let Some(save) = &mut save
            && let Err(problem) = save.append(letter, now)
        {
            unsaved = Some(problem);
            stop.cancel();
            return Fate::Stay;
        }
        Fate::Drop
    });
    let passed = passed.await;
    report.finish(passed);
    if let Some(problem) = unsaved {
        report.stopped_by = Some(problem.to_string());
    }
    report.show(args.json)
}

/// Counts what would go and asks.
async fn confirmed(
    selection: &Selection,
    queue: &DeadQueue,
    stop: &CancellationToken,
) -> Result<bool, Problem> {
    let mut count = 0_u64;
    let passed = queue.pass(|letter| {
        count += u64::from(selection.holds(&letter.facts));
        Fate::Stay
    });
    passed.await.end?;
    if count == 0 {
        return Ok(true);
    }
    eprint!("Drop {count} dead messages for good? [y/N] ");
    let answer = tokio::task::spawn_blocking(|| {
        let mut answer = String::new();
        stdin().lock().read_line(&mut answer).map(|_| answer)
    });
    let answer = tokio::select! {
        () = stop.cancelled() => return Ok(false),
        answer = answer => answer,
    };
    let answer = answer.ok().and_then(Result::ok).unwrap_or_default();
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
