//! `lanekeeper demo`: the whole of Lanekeeper in one process, to be watched.
//!
//! A [scenario] is offered to a [stage], the embedded world; a [tally] is kept of what happens
//! there; [rules] judge it; the [screen] shows it, as a [table] or as [json].

mod json;
mod play;
mod rules;
mod scenario;
mod screen;
mod stage;
mod table;
mod tally;
mod telling;
#[cfg(test)]
mod tests;
mod watch;
mod windows;
mod words;

use std::io;
use std::process::ExitCode;

use clap::builder::RangedU64ValueParser;

use self::play::{Ending, play};
use self::rules::{Promises, Rule, judge};
use self::scenario::{ACCOUNT, Offer, Scenario};
use self::screen::Screen;
use self::stage::{Cast, Stage};
use self::table::LaneNames;
use self::tally::Second;
use crate::domain::{Budget, Ceilings, Lane, Reserve};

/// The exit code of a command that was stopped by Ctrl-C, as shells have it.
const INTERRUPTED: u8 = 130;

/// How many seconds what was shed may take to drain when nothing more is offered.
const DRAINING: u32 = 5;

const HELP: &str = "\
Examples:
  lanekeeper demo
        a campaign of 250 a second beside 15 one-time passwords a second, for an account
        that may send 100 a second and keeps 20 % of that for passwords
  lanekeeper demo --reserve 0
        the same without a reserve: see what becomes of the passwords
  lanekeeper demo --budget 500 --workers 8 --seconds 20
        more of everything
  lanekeeper demo --json | tail -n 1
        the summary, for scripts: figures, and each rule with whether it held

Exit codes:
  0    every rule held
  1    a rule was broken: the last lines say which
  2    wrong usage
  130  stopped by Ctrl-C";

/// What to play.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// How long messages are offered, in seconds: 3 to 60
    #[arg(long, value_name = "S", default_value_t = 8, value_parser = within(3, 60))]
    seconds: u32,
    /// Campaign messages offered per second: 0 to 5000
    #[arg(long, value_name = "N", default_value_t = 250, value_parser = within(0, 5_000))]
    campaign_per_second: u32,
    /// One-time passwords offered per second, from the second second on: 0 to 1000
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = within(0, 1_000))]
    otp_per_second: u32,
    /// Messages per second that the account may send: 0 to 10000
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = within(0, 10_000))]
    budget: u32,
    /// The part of the budget that only passwords can reach, in percent: 0 to 100
    #[arg(long, value_name = "PERCENT", default_value_t = 20, value_parser = within(0, 100))]
    reserve: u32,
    /// Workers that share the budget: 1 to 16
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = within(1, 16))]
    workers: u32,
    /// Print one JSON object per second, and one at the end
    #[arg(long)]
    json: bool,
}

fn within(least: u64, most: u64) -> RangedU64ValueParser<u32> {
    RangedU64ValueParser::new().range(least..=most)
}

impl Args {
    fn scenario(&self) -> Scenario {
        Scenario {
            seconds: self.seconds,
            campaign: self.campaign_per_second,
            passwords: self.otp_per_second,
        }
    }

    fn ceilings(&self) -> anyhow::Result<Ceilings> {
        let budget = Budget::per_second(self.budget.into())?;
        let reserve = Reserve::percent(self.reserve.into())?;
        Ok(Ceilings::of(budget, reserve))
    }

    fn cast(&self) -> anyhow::Result<Cast> {
        Ok(Cast {
            workers: self.workers as usize,
            ceilings: self.ceilings()?,
            seed: fastrand::u64(..),
        })
    }
}

/// What a scenario promises its passwords: with a reserve that is large enough, that each leaves
/// within a second.
fn promises(scenario: Scenario, ceilings: Ceilings) -> Promises {
    let budget = ceilings.of_lane(Lane::Transactional);
    let others = ceilings
        .of_lane(Lane::Marketing)
        .min(scenario.campaign.saturating_mul(scenario.seconds));
    let room = budget - others;
    let passwords = if scenario.passwords <= room {
        Ok(())
    } else {
        Err(format!(
            "{} passwords a second are more than the {room} a second that nobody else can use",
            scenario.passwords
        ))
    };
    Promises {
        ceilings,
        passwords,
    }
}

/// What is to be played and told.
struct Programme {
    offers: Box<dyn Iterator<Item = Offer> + Send>,
    promises: Promises,
    /// The longest it may take, in seconds.
    most: u32,
    opening: String,
    closing: Box<dyn FnOnce(&Ending) -> String>,
    names: LaneNames,
}

/// Plays the worked example and shows it. The exit code is 1 when a rule was broken.
///
/// # Errors
/// When the output cannot be written.
pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let cast = args.cast()?;
    perform(example(&args, cast), cast, args.json).await
}

/// The worked example.
fn example(args: &Args, cast: Cast) -> Programme {
    let (scenario, ceilings) = (args.scenario(), cast.ceilings);
    Programme {
        offers: Box::new(scenario.offers()),
        promises: promises(scenario, ceilings),
        most: scenario.seconds + DRAINING,
        opening: telling::opening(ACCOUNT, scenario, ceilings, cast.workers),
        closing: Box::new(move |ending| telling::closing(scenario, ceilings, ending)),
        names: LaneNames {
            marketing: "camp.",
            transactional: "pass.",
        },
    }
}

async fn perform(programme: Programme, cast: Cast, json: bool) -> anyhow::Result<ExitCode> {
    let screen = if json {
        Screen::Json
    } else {
        let budget = cast.ceilings.of_lane(Lane::Transactional);
        Screen::table(programme.names, budget)
    };
    let performed = async {
        screen.open(&programme.opening)?;
        let stage = Stage::open(cast)?;
        let show = |second: &Second| screen.second(second);
        let ending = play(stage, programme.offers, programme.most, interrupt(), show).await?;
        let rules = judge(&programme.promises, &ending);
        screen.close(&(programme.closing)(&ending), &ending, &rules, None)?;
        Ok(exit_code(&ending, &rules))
    };
    performed.await.or_else(unless_nobody_reads)
}

fn exit_code(ending: &Ending, rules: &[Rule]) -> ExitCode {
    if ending.interrupted {
        return INTERRUPTED.into();
    }
    let broken = rules.iter().any(|rule| rule.held == Some(false));
    if broken {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// Whoever reads through a pipe and goes away, as `head` does, has seen enough.
fn unless_nobody_reads(error: anyhow::Error) -> anyhow::Result<ExitCode> {
    match error.downcast_ref::<io::Error>() {
        Some(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::FAILURE),
        _ => Err(error),
    }
}

/// Ctrl-C. Where it cannot be listened for, it ends the process, as it always does.
async fn interrupt() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending().await
    }
}
