//! `lanekeeper demo`: the whole of Lanekeeper in one process, to be watched.
//!
//! A [scenario] is offered to a [stage], the embedded world; a [tally] is kept of what happens
//! there; [rules] judge it; the [screen] shows it, as a [table] or as [json].

mod file;
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
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::RangedU64ValueParser;

use self::file::{Contents, Facts, Room, Sender};
use self::play::{Ending, play};
use self::rules::{Promises, Rule, judge};
use self::scenario::{ACCOUNT, Offer, Scenario};
use self::screen::Screen;
use self::stage::{Cast, Stage};
use self::table::LaneNames;
use self::tally::Second;
use super::values::{channel, region};
use super::{USAGE, complain};
use crate::batch::FileError;
use crate::domain::{AccountId, Budget, Ceilings, Channel, Lane, Region, Reserve};

/// The exit code of a command that was stopped by Ctrl-C, as shells have it.
const INTERRUPTED: u8 = 130;

/// The exit code when nobody reads the output any more, as shells have it for SIGPIPE.
const UNREAD: u8 = 141;

/// The exit code when rows of a file were rejected.
const REJECTED: u8 = 3;

/// How many seconds messages are offered, unless set otherwise.
const OFFERING: u32 = 8;

/// How many seconds' worth of a file is played, unless set otherwise.
const PLAYED: u32 = 20;

/// How many seconds what was shed may take to drain when nothing more is offered.
const DRAINING: u32 = 5;

const HELP: &str = "\
Examples:
  lanekeeper demo
        a campaign of 250 a second beside 15 one-time passwords a second, for
        an account that may send 100 a second and keeps 20 % of that for
        passwords
  lanekeeper demo --reserve 0
        the same without a reserve: see what becomes of the passwords
  lanekeeper demo --budget 500 --workers 8 --seconds 20
        more of everything
  lanekeeper demo --json | tail -n 1
        the summary, for scripts: figures, and each rule with whether it held
  lanekeeper demo spring.csv --budget 50
        the first rows of a file of your own, what is wrong with others, and
        how long all of it would take; a row without priority or traffic_lane
        is a campaign's
  lanekeeper demo spring.csv --region GB
        the same for numbers without a country code, such as 07700 900123

Exit codes:
  0    every rule held
  1    a rule was broken: the last lines say which
  2    wrong usage, or a file that cannot be read
  3    rows of the file were rejected, and all rules held
  130  stopped by Ctrl-C
  141  whoever read the output went away before its end, as `head` does: no rule was judged";

/// What to play.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// A file of messages to play instead of the example, CSV or JSON lines, or - for standard input
    #[arg(conflicts_with_all = ["campaign_per_second", "otp_per_second"])]
    file: Option<PathBuf>,
    /// How long messages are offered, in seconds: 3 to 60 [default: 8]; with a file, how much of it
    /// is played [default: 20]
    #[arg(long, value_name = "S", value_parser = within(3, 60))]
    seconds: Option<u32>,
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
    /// The account of a file's messages
    #[arg(long, default_value = ACCOUNT, value_parser = AccountId::parse)]
    account: AccountId,
    /// The channel of a file's rows that name none
    #[arg(long, default_value = "sms", value_parser = channel)]
    channel: Channel,
    /// The country of a file's telephone numbers that have no country code, such as GB
    #[arg(long, value_name = "COUNTRY", value_parser = region)]
    region: Option<Region>,
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
            seconds: self.seconds.unwrap_or(OFFERING),
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
    file: Option<Facts>,
}

/// Plays the worked example, or a file, and shows it. The exit code is 1 when a rule was broken.
///
/// # Errors
/// When the output cannot be written.
pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let cast = args.cast()?;
    let programme = match &args.file {
        None => example(&args, cast),
        Some(path) => match read(path, &args, cast) {
            Ok(contents) => of_file(contents, &args, cast),
            Err(error) => {
                complain(&error);
                return Ok(USAGE.into());
            }
        },
    };
    perform(programme, cast, args.json).await
}

fn read(path: &Path, args: &Args, cast: Cast) -> Result<Contents, FileError> {
    let room = Room {
        ceilings: cast.ceilings,
        seconds: args.seconds.unwrap_or(PLAYED),
    };
    let sender = Sender {
        account: &args.account,
        channel: args.channel,
        region: args.region,
    };
    file::read(path, sender, room)
}

/// A file's first rows, as many as leave in the time that there is.
fn of_file(mut contents: Contents, args: &Args, cast: Cast) -> Programme {
    let ceilings = cast.ceilings;
    let offers = std::mem::take(&mut contents.offers);
    Programme {
        offers: Box::new(offers.into_iter()),
        promises: Promises {
            ceilings,
            passwords: Err("a file's messages are offered all at once".to_owned()),
        },
        // One more, because windows begin a little later than seconds.
        most: args.seconds.unwrap_or(PLAYED) + 1,
        opening: contents.opening(&args.account, ceilings, cast.workers),
        names: LaneNames {
            marketing: "mark.",
            transactional: "trans",
        },
        file: Some(contents.facts(ceilings)),
        closing: Box::new(move |ending| contents.closing(ceilings, ending)),
    }
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
        file: None,
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
        let closing = (programme.closing)(&ending);
        let file = programme.file.as_ref();
        screen.close(&closing, &ending, &rules, file)?;
        Ok(exit_code(&ending, &rules, file))
    };
    performed.await.or_else(unless_nobody_reads)
}

fn exit_code(ending: &Ending, rules: &[Rule], file: Option<&Facts>) -> ExitCode {
    if ending.interrupted {
        return INTERRUPTED.into();
    }
    let broken = rules.iter().any(|rule| rule.held == Some(false));
    match file {
        _ if broken => ExitCode::FAILURE,
        Some(file) if file.rejected > 0 => REJECTED.into(),
        _ => ExitCode::SUCCESS,
    }
}

/// Whoever reads through a pipe and goes away, as `head` does, has seen enough.
fn unless_nobody_reads(error: anyhow::Error) -> anyhow::Result<ExitCode> {
    match error.downcast_ref::<io::Error>() {
        Some(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(UNREAD.into()),
        _ => Err(error),
    }
}

/// Ctrl-C. Where it cannot be listened for, it ends the process, as it always does.
async fn interrupt() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
