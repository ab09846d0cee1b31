//! `lanekeeper dead`: what could not be read, and what becomes of it.

mod chosen;
mod counted;
mod drop;
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

use anyhow::Context as _;
use tokio_util::sync::CancellationToken;

use crate::clock::SystemClock;
use crate::dispatch::ports::Clock as _;
use crate::intake::AmqpOptions;
use crate::intake::dead::DeadQueue;
use crate::settings::Settings;

use super::stop::{Signal, Stop};

use problem::Problem;

/// The exit code of a command that did what it was asked.
const CARRIED_OUT: u8 = 0;

/// The exit code of one that did not come to its end.
const NOT_FINISHED: u8 = 1;

const HELP: &str = "\
Examples:
  lanekeeper dead list --newer-than 1h
        what was buried in the last hour, oldest first, and how many for which
        reason
  lanekeeper dead show 3fa94c1e02b7 --body
        all about one, with its body, which holds the recipient and the text
  lanekeeper dead show 3fa94c1e02b7 --raw > repair.json
  lanekeeper dead replay 3fa94c1e02b7 --with repair.json
        repair one: edit the file in between
  lanekeeper dead replay --all --dry-run
        which of them could be read now, after an update of Lanekeeper
  lanekeeper dead drop --all --older-than 30d --save dropped.jsonl --yes
        clear out, and keep what was dropped in a file

A message is named by its reference, the beginning of the SHA-256 of its body, or by a job id where \
one can be made out. It is taken from the queue only when its copy is stored; whatever interrupts a \
command, nothing is lost, and running it again goes on with the rest. A message that was replayed \
right then may be replayed twice; workers recognise the job by its id while they remember it \
(claims.life_s). `drop` says how many are meant and asks; it drops those, and none that came after.

Messages that were buried before workers noted the time, or that others put into the queue, have an \
unknown age; --older-than and --newer-than leave them out. While one command reads, a second one \
waits for its turn. What has been looked at ten times moves to the end of the queue, because \
RabbitMQ 4 drops what was returned twenty times.";

const CODES: &str = "\
Exit codes:
  0    done
  1    the broker could not be reached or failed part-way, or dropping was not
       confirmed; run it again for the rest
  2    wrong usage or settings, or a reference that stands for several
       messages; nothing was done
  3    some messages still cannot be read and were left, or no message has
       that reference
  130  stopped by Ctrl-C (SIGINT), 143 by SIGTERM: what was in hand is settled;
       run it again for the rest. A second signal does not wait for that

`lanekeeper dead --help` has examples, and says how messages are named.";

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
    #[command(after_help = CODES)]
    List(list::Args),
    /// Show one message: what is known of it, and what reading it would give now.
    #[command(after_help = CODES)]
    Show(show::Args),
    /// Publish messages again, as any publisher would, if they can be read now.
    ///
    /// They go to the lane and account that they name. One that is read but has a wrong field ends
    /// as refused, and one past its `expires_at` as expired.
    #[command(after_help = CODES)]
    Replay(replay::Args),
    /// Remove messages for good.
    #[command(after_help = CODES)]
    Drop(drop::Args),
}

/// Runs the command.
///
/// # Errors
/// When the settings cannot be used, or signals cannot be caught.
pub async fn run(settings: Settings, args: Args) -> anyhow::Result<ExitCode> {
    let options = super::amqp::options(&settings)?;
    let stop = Stop::listen().context("cannot listen for signals")?;
    let result = tokio::select! {
        biased;
        result = carry_out(args.action, options, &stop.stages.soft) => result,
        () = stop.stages.hard.cancelled() => Err(Problem::CutShort),
    };
    let code = result.unwrap_or_else(|problem| {
        super::complain(&problem);
        problem.exit_code()
    });
    Ok(as_signalled(code, stop.signal()).into())
}

async fn carry_out(
    action: Action,
    options: AmqpOptions,
    stop: &CancellationToken,
) -> Result<u8, Problem> {
    let region = options.default_region;
    let now = SystemClock.now();
    let queue = tokio::select! {
        biased;
        () = stop.cancelled() => return Err(Problem::told_to_stop()),
        queue = DeadQueue::open(options, stop.clone()) => queue?,
    };
    let result = match action {
        Action::List(args) => list::run(args, &queue, now).await,
        Action::Show(args) => show::run(args, &queue, region, now).await,
        Action::Replay(args) => replay::run(args, &queue, region, now).await,
        Action::Drop(args) => drop::run(args, &queue, stop, now).await,
    };
    queue.close().await;
    result
}

/// The exit code of what a signal kept from its end says which signal that was. What was done before
/// it came is done.
const fn as_signalled(code: u8, signal: Option<Signal>) -> u8 {
    match signal {
        Some(signal) if code == NOT_FINISHED => signal.exit_code(),
        _ => code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_signal_kept_from_its_end_has_the_exit_code_of_the_signal() {
        let codes = |code| {
            [None, Some(Signal::Interrupt), Some(Signal::Terminate)]
                .map(|signal| as_signalled(code, signal))
        };
        assert_eq!(codes(NOT_FINISHED), [1, 130, 143]);
        assert_eq!(codes(CARRIED_OUT), [0; 3]);
        assert_eq!(codes(3), [3; 3]);
    }
}
