//! `lanekeeper dead drop`: away for good.

use std::io::{BufRead as _, IsTerminal as _, stdin};
use std::path::PathBuf;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::intake::dead::{DeadQueue, Fate};

use super::chosen::Chosen;
use super::counted::Counted;
use super::problem::Problem;
use super::report::{Report, interrupted};
use super::save::Save;
use super::select::Which;

/// What to drop, and how.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub which: Which,
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
    let mut chosen = Chosen::find(args.which, queue, now).await?;
    if !args.yes {
        let mut report = chosen.report("drop");
        let counted = count(&mut chosen, queue, &mut report).await?;
        if !confirmed(&mut report, stop).await? {
            return report.show(args.json);
        }
        chosen.narrow(counted);
    }
    let mut report = chosen.report("drop");
    let mut unsaved = None;
    let passed = queue.pass(|letter| {
        if unsaved.is_some() || !chosen.holds(&letter.facts, &mut report) {
            return Fate::Stay;
        }
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

/// Counts what would go: all of it, or there is nothing to ask about.
async fn count(
    chosen: &mut Chosen,
    queue: &DeadQueue,
    report: &mut Report,
) -> Result<Counted, Problem> {
    let mut counted = Counted::default();
    let passed = queue.pass(|letter| {
        if chosen.holds(&letter.facts, report) {
            counted.add(letter.facts.digest);
        }
        Fate::Stay
    });
    let end = passed.await.end?;
    interrupted(&end).map_or(Ok(counted), |why| Err(Problem::Interrupted(why)))
}

/// Asks whether what was counted may go; of nothing it does not ask.
async fn confirmed(report: &mut Report, stop: &CancellationToken) -> Result<bool, Problem> {
    let count = report.matched;
    if count == 0 {
        return Ok(false);
    }
    eprint!("Drop {count} dead messages for good? [y/N] ");
    let answer = tokio::task::spawn_blocking(|| {
        let mut answer = String::new();
        stdin().lock().read_line(&mut answer).map(|_| answer)
    });
    let answer = tokio::select! {
        () = stop.cancelled() => {
            eprintln!();
            return Err(Problem::told_to_stop());
        }
        answer = answer => answer,
    };
    let answer = answer.ok().and_then(Result::ok).unwrap_or_default();
    let confirmed = matches!(answer.trim(), "y" | "Y" | "yes");
    if !confirmed {
        report.left = count;
        report.stopped_by = Some("not confirmed".to_owned());
    }
    Ok(confirmed)
}
