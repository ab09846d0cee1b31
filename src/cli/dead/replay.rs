//! `lanekeeper dead replay`: back to the publishers' exchange, as any publisher sends.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::domain::{Payload, Region};
use crate::intake::Outgoing;
use crate::intake::dead::{DeadQueue, Fate, Letter};

use super::chosen::Chosen;
use super::problem::Problem;
use super::reading::Reading;
use super::report::Report;
use super::select::Which;
use crate::cli::escape;

/// What to replay, and how.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub which: Which,
    /// Publish this file instead of the message's body: for one REF
    #[arg(long, value_name = "FILE", requires = "refs")]
    pub with: Option<PathBuf>,
    /// Publish also what still cannot be read; workers will bury it again
    #[arg(long)]
    pub anyway: bool,
    /// Only say what would be replayed
    #[arg(long)]
    pub dry_run: bool,
    /// Print the report as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Replays the messages that can be read now.
pub(super) async fn run(
    args: Args,
    queue: &DeadQueue,
    region: Option<Region>,
    now: Timestamp,
) -> Result<u8, Problem> {
    let repaired = match &args.with {
        Some(path) if args.which.choice.refs.len() == 1 => {
            Some(repaired(path, region, args.anyway)?)
        }
        Some(_) => {
            return Err(Problem::Usage(
                "--with repairs one message: give one REF".to_owned(),
            ));
        }
        None => None,
    };
    let mut chosen = Chosen::find(args.which, queue, now).await?;
    let mut report = chosen.report("replay");
    report.dry_run = args.dry_run;
    let passed = queue.pass(|letter| {
        if !chosen.holds(&letter.facts, &mut report) {
            return Fate::Stay;
        }
        let payload = repaired.as_ref().unwrap_or(&letter.payload);
        let reading = Reading::of(payload, region);
        if !report.take_note(letter, &reading, args.anyway) || args.dry_run {
            return Fate::Stay;
        }
        let copy = Outgoing::to_send(queue.names(), reading.head(), payload.clone());
        Fate::Publish(Box::new(copy))
    });
    let passed = passed.await;
    report.finish(passed);
    report.show(args.json)
}

impl Report {
    /// Says of one message what is to be known of it; whether it is replayed.
    fn take_note(&mut self, letter: &Letter, reading: &Reading, anyway: bool) -> bool {
        let reference = letter.facts.digest;
        match reading {
            Reading::Job(_) => {}
            Reading::Refused(_, reason, detail) => {
                self.will_be_refused += 1;
                let detail = escape::line(detail);
                eprintln!("note: {reference} will be refused, {reason}: {detail}");
            }
            Reading::Undecodable(_) if anyway => {}
            Reading::Undecodable(detail) => {
                self.still_undecodable += 1;
                let detail = escape::line(detail);
                eprintln!("left: {reference} is still undecodable: {detail}");
                return false;
            }
        }
        true
    }
}

/// The repaired message: it must be a job that can be sent, unless it is to go anyway.
fn repaired(path: &Path, region: Option<Region>, anyway: bool) -> Result<Payload, Problem> {
    let shown = path.display().to_string();
    let body = std::fs::read(path).map_err(|why| Problem::File {
        path: shown.clone(),
        why,
    })?;
    let payload = Payload::new(body);
    let wrong = match Reading::of(&payload, region) {
        Reading::Refused(_, reason, detail) if !anyway => {
            let field = reason.trim_start_matches("invalid_");
            format!("`{field}`: {detail}")
        }
        Reading::Undecodable(detail) if !anyway => detail,
        _ => return Ok(payload),
    };
    Err(Problem::Usage(format!(
        "{shown} is no job that can be sent: {wrong}; nothing was replayed"
    )))
}
