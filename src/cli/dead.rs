//! `lanekeeper dead`: what could not be read, and what becomes of it.

mod age;
mod drop;
mod escape;
mod line;
mod list;
mod pretty;
mod problem;
mod reading;
mod replay;
mod report;
mod save;
mod select;
mod show;
mod table;

use std::process::ExitCode;
use std::time::Duration;

use jiff::Timestamp;

use crate::clock::SystemClock;
use crate::dispatch::ports::Clock as _;
use crate::intake::dead::{DeadQueue, Fate};
use crate::ops::shutdown::Shutdown;
use crate::settings::Settings;

use problem::Problem;
use select::{Ages, Choice, Resolving, Selection};

/// The exit code of a command that did what it was asked.
const CARRIED_OUT: u8 = 0;

/// How long a signal leaves for finishing a batch.
const GRACE: Duration = Duration::from_secs(15);

const HELP: &str = "\
Examples:
  lanekeeper dead list --newer-than 1h
        what was buried in the last hour, oldest first, and how many for which reason
  lanekeeper dead show 3fa94c1e02b7 --body
        all about one, with its body, which holds the recipient and the text
  lanekeeper dead show 3fa94c1e02b7 --raw > repair.json
  lanekeeper dead replay 3fa94c1e02b7 --with repair.json
        repair one: edit the file in between
  lanekeeper dead replay --all --dry-run
        which of them could be read now, after an update of Lanekeeper
  lanekeeper dead drop --all --older-than 30d --save dropped.jsonl --yes
        clear out, and keep what was dropped in a file

A message is named by its reference, the beginning of the SHA-256 of its body, or by a job id where
one can be made out. It is taken from the queue only when its copy is stored; whatever interrupts a
command, nothing is lost, and running it again goes on with the rest. A message that was replayed
right then may be replayed twice; workers recognise the job by its id.

Messages that were buried before workers noted the time, or that others put into the queue, have an
unknown age; --older-than and --newer-than leave them out. While one command reads, a second one
waits for its turn. What has been looked at ten times moves to the end of the queue, because
RabbitMQ 4 drops what was returned twenty times.

Exit codes:
  0  done
  1  the broker could not be reached, or failed part-way, or it was told to stop: run it again
  2  wrong usage or settings, or a reference that stands for several messages; nothing was done
  3  some messages still cannot be read and were left, or no message has that reference";

/// Look into the queue of messages that could not be read; replay them after a repair, or drop them.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List messages: reference, age, reason, size, account, job id and what was wrong.
    #[command(after_help = HELP)]
    List(list::Args),
    /// Show one message: what is known of it, and what reading it would give now.
    #[command(after_help = HELP)]
    Show(show::Args),
    /// Publish messages again, as any publisher would, if they can be read now.
    ///
    /// They go to the lane and account that they name. One that is read but has a wrong field ends
    /// as refused, and one past its `expires_at` as expired.
    #[command(after_help = HELP)]
    Replay(replay::Args),
    /// Remove messages for good.
    #[command(after_help = HELP)]
    Drop(drop::Args),
}

/// Runs the command.
///
/// # Errors
/// When the settings cannot be used, or signals cannot be caught.
pub async fn run(settings: Settings, args: Args) -> anyhow::Result<ExitCode> {
    let options = super::amqp::options(&settings)?;
    let region = options.default_region;
    let stop = Shutdown::listen(GRACE)?.soft;
    let now = SystemClock.now();
    let carried_out = async {
        let queue = DeadQueue::open(options, stop.clone()).await?;
        let result = match args.action {
            Action::List(args) => list::run(args, &queue, now).await,
            Action::Show(args) => show::run(args, &queue, region, now).await,
            Action::Replay(args) => replay::run(args, &queue, region, now).await,
            Action::Drop(args) => drop::run(args, &queue, &stop, now).await,
        };
        queue.close().await;
        result
    };
    let code = carried_out.await.unwrap_or_else(|problem: Problem| {
        eprintln!("error: {problem}");
        problem.exit_code()
    });
    Ok(code.into())
}

/// What was chosen, and the references that no message has.
struct Chosen {
    selection: Selection,
    missing: Vec<String>,
}

/// Finds out which messages are meant. References need a look at all messages first.
async fn choose(
    choice: Choice,
    ages: Ages,
    queue: &DeadQueue,
    now: Timestamp,
) -> Result<Chosen, Problem> {
    if choice.refs.is_empty() {
        return Ok(Chosen {
            selection: Selection::of(choice.reason, ages, now),
            missing: Vec::new(),
        });
    }
    let mut resolving = Resolving::of(&choice.refs);
    let passed = queue.pass(|letter| {
        resolving.see(&letter.facts);
        Fate::Stay
    });
    let end = passed.await.end?;
    if let Some(why) = report::interrupted(&end) {
        return Err(Problem::Interrupted(why));
    }
    let resolved = resolving.resolve()?;
    Ok(Chosen {
        selection: Selection::these(resolved.digests, ages, now),
        missing: resolved.missing,
    })
}
