//! `lanekeeper pause`, `resume` and `cancel`.

use std::process::ExitCode;

use serde::Serialize;
use sqlx::Connection as _;

use super::tables::CODES;
use super::tables::grid::{Grid, or_dash};
use super::tables::output::{print, print_json};
use super::tables::problem::Problem;
use super::tables::session::{self, Session};
use super::tables::values::id;
use super::values::account;
use crate::accounts::tables::holds::{self, HoldRecord, HoldTarget, Lifted};
use crate::accounts::{HoldKind, hold_name};
use crate::dispatch::ports::Hold;
use crate::domain::AccountId;
use crate::settings::Settings;

const PAUSE_HELP: &str = "\
Examples:
  lanekeeper pause account acme --reason \"invoice 4711 is unpaid\"
  lanekeeper pause campaign acme spring
        nothing of it goes out from now on; its jobs wait in the database
  lanekeeper pause --list
        what is paused or cancelled, the newest first

Every worker follows with its next batch, in both lanes. `lanekeeper resume` lets the jobs go on; \
`lanekeeper cancel` ends them.";

const RESUME_HELP: &str = "\
Examples:
  lanekeeper resume account acme
        its jobs go out again, never faster than its budget allows
  lanekeeper resume campaign acme spring --cancelled
        lift a cancellation; jobs that have ended as cancelled stay so

A job goes out when nothing that it belongs to is paused any more: its account, campaign, journey or \
batch.";

const CANCEL_HELP: &str = "\
Examples:
  lanekeeper cancel batch acme spring-2 --reason \"wrong prices\"
        its jobs end as cancelled, those that wait as well

Jobs that a carrier has already are not called back.";

/// What a hold is on.
#[derive(Debug, clap::Args)]
struct On {
    /// account, campaign, journey or batch
    #[arg(value_name = "account|campaign|journey|batch", value_parser = kind)]
    kind: Option<HoldKind>,
    /// The account's id
    #[arg(value_name = "ACCOUNT", value_parser = account)]
    of: Option<AccountId>,
    /// The campaign's, journey's or batch's id, as jobs have it
    #[arg(value_name = "ID", value_parser = id)]
    id: Option<String>,
}

fn kind(text: &str) -> Result<HoldKind, String> {
    HoldKind::parse(text).ok_or_else(|| "expected account, campaign, journey or batch".to_owned())
}

impl On {
    fn target(self) -> Result<HoldTarget, Problem> {
        let usage = |expected: &str| Err(Problem::Usage(format!("expected {expected}")));
        let (kind, account, target) = match (self.kind, self.of, self.id) {
            (Some(kind @ HoldKind::Account), Some(account), None) => {
                let target = account.to_string();
                (kind, account, target)
            }
            (Some(HoldKind::Account), _, Some(_)) => {
                return usage("nothing behind the account: `account ACCOUNT`");
            }
            (Some(HoldKind::Account), None, _) | (None, ..) => {
                return usage("`account ACCOUNT`, or campaign, journey or batch ACCOUNT ID");
            }
            (Some(kind), Some(account), Some(id)) => (kind, account, id),
            (Some(kind), ..) => {
                let kind = kind.as_str();
                return usage(&format!("`{kind} ACCOUNT ID`: the {kind}'s id is missing"));
            }
        };
        Ok(HoldTarget {
            account,
            kind,
            target,
        })
    }
}

/// Hold back an account, campaign, journey or batch until it is resumed.
#[derive(Debug, clap::Args)]
#[command(after_help = [PAUSE_HELP, "\n\n", CODES].concat())]
pub struct PauseArgs {
    #[command(flatten)]
    on: On,
    /// Why, for those who look later
    #[arg(long, value_parser = id)]
    reason: Option<String>,
    /// List what is paused or cancelled instead
    #[arg(long, conflicts_with_all = ["kind", "of", "id", "reason"])]
    list: bool,
    /// With --list: only holds of this account
    #[arg(long, value_parser = account, requires = "list")]
    account: Option<AccountId>,
    /// Print JSON: the hold, or with --list one object per hold
    #[arg(long)]
    json: bool,
}

/// Let go on what is paused.
#[derive(Debug, clap::Args)]
#[command(after_help = [RESUME_HELP, "\n\n", CODES].concat())]
pub struct ResumeArgs {
    #[command(flatten)]
    on: On,
    /// Lift a cancellation as well
    #[arg(long)]
    cancelled: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// End the jobs of an account, campaign, journey or batch.
#[derive(Debug, clap::Args)]
#[command(after_help = [CANCEL_HELP, "\n\n", CODES].concat())]
pub struct CancelArgs {
    #[command(flatten)]
    on: On,
    /// Why, for those who look later
    #[arg(long, value_parser = id)]
    reason: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A hold as it is shown.
#[derive(Debug, Serialize)]
pub(super) struct HoldLine<'a> {
    account_id: &'a str,
    kind: &'static str,
    target: &'a str,
    hold: &'static str,
    reason: Option<&'a str>,
    since: String,
    /// The API key that made it; null: an operator did.
    by_key: Option<&'a str>,
}

impl<'a> From<&'a HoldRecord> for HoldLine<'a> {
    fn from(record: &'a HoldRecord) -> Self {
        Self {
            account_id: record.on.account.as_str(),
            kind: record.on.kind.as_str(),
            target: &record.on.target,
            hold: hold_name(record.hold),
            reason: record.reason.as_deref(),
            since: record.since.to_string(),
            by_key: record.by_key.as_deref(),
        }
    }
}

impl HoldLine<'_> {
    /// `paused since 2026-05-01T08:00:00Z: invoice 4711 is unpaid`.
    pub(super) fn in_words(&self) -> String {
        let Self { hold, since, .. } = self;
        let reason = self
            .reason
            .map_or_else(String::new, |why| format!(": {why}"));
        format!("{hold} since {since}{reason}")
    }
}

/// What a command did.
#[derive(Debug, Serialize)]
struct Done<'a> {
    account_id: &'a str,
    kind: &'static str,
    target: &'a str,
    before: Option<&'static str>,
    now: Option<&'static str>,
}

/// Runs `pause`, and gives its exit code.
///
/// # Errors
/// Never: what goes wrong is told, and has an exit code.
pub async fn pause(settings: Settings, args: PauseArgs) -> anyhow::Result<ExitCode> {
    let code = session::run(settings, async |session| {
        if args.list {
            return list(session, args.account, args.json).await;
        }
        put(session, args.on, Hold::Paused, args.reason, args.json).await
    })
    .await;
    Ok(code)
}

/// Runs `cancel`, and gives its exit code.
///
/// # Errors
/// Never: what goes wrong is told, and has an exit code.
pub async fn cancel(settings: Settings, args: CancelArgs) -> anyhow::Result<ExitCode> {
    let code = session::run(settings, async |session| {
        put(session, args.on, Hold::Cancelled, args.reason, args.json).await
    })
    .await;
    Ok(code)
}

/// Runs `resume`, and gives its exit code.
///
/// # Errors
/// Never: what goes wrong is told, and has an exit code.
pub async fn resume(settings: Settings, args: ResumeArgs) -> anyhow::Result<ExitCode> {
    let code = session::run(settings, async |session| lift(session, args).await).await;
    Ok(code)
}

async fn put(
    session: &mut Session,
    on: On,
    hold: Hold,
    reason: Option<String>,
    json: bool,
) -> Result<u8, Problem> {
    let on = on.target()?;
    let mut transaction = session.connection.begin().await?;
    let before = holds::put(&mut transaction, &on, hold, reason.as_deref(), None).await?;
    transaction.commit().await?;
    if before > Some(hold) {
        return Err(Problem::Usage(format!(
            "{} is cancelled, which a pause would undo; lift that first by `lanekeeper resume … \
             --cancelled`",
            in_words(&on)
        )));
    }
    let remark = if before == Some(hold) { " already" } else { "" };
    let now = hold_name(hold);
    tell(&on, before, Some(hold), &format!("{now}{remark}"), json)
}

async fn lift(session: &mut Session, args: ResumeArgs) -> Result<u8, Problem> {
    let on = args.on.target()?;
    let gravest = if args.cancelled {
        Hold::Cancelled
    } else {
        Hold::Paused
    };
    let mut transaction = session.connection.begin().await?;
    let lifted = holds::lift(&mut transaction, &on, gravest, None).await?;
    transaction.commit().await?;
    let (before, words) = match lifted {
        Lifted::NotHeld => (None, "was not paused"),
        Lifted::Lifted(Hold::Paused) => (Some(Hold::Paused), "goes on"),
        Lifted::Lifted(Hold::Cancelled) => (Some(Hold::Cancelled), "is cancelled no longer"),
        Lifted::Graver(_) | Lifted::Operators(_) => {
            return Err(Problem::Usage(format!(
                "{} is cancelled, not paused; give --cancelled to lift that: jobs that have ended \
                 stay so, and new ones go out",
                in_words(&on)
            )));
        }
    };
    tell(&on, before, None, words, args.json)
}

/// `campaign spring of acme`.
fn in_words(on: &HoldTarget) -> String {
    let HoldTarget {
        account,
        kind,
        target,
    } = on;
    match kind {
        HoldKind::Account => format!("account {account}"),
        _ => format!("{} {target} of account {account}", kind.as_str()),
    }
}

fn tell(
    on: &HoldTarget,
    before: Option<Hold>,
    now: Option<Hold>,
    words: &str,
    json: bool,
) -> Result<u8, Problem> {
    if json {
        print_json([Done {
            account_id: on.account.as_str(),
            kind: on.kind.as_str(),
            target: &on.target,
            before: before.map(hold_name),
            now: now.map(hold_name),
        }])?;
    } else {
        let on = in_words(on);
        print(&format!("{}: {words}\n", super::escape::line(&on)))?;
    }
    Ok(0)
}

async fn list(
    session: &mut Session,
    account: Option<AccountId>,
    json: bool,
) -> Result<u8, Problem> {
    let holds = holds::list(&mut session.connection, account.as_ref()).await?;
    let lines = holds.iter().map(HoldLine::from);
    if json {
        print_json(lines)?;
    } else if holds.is_empty() {
        print("Nothing is paused or cancelled.\n")?;
    } else {
        let mut grid = Grid::new(["ACCOUNT", "KIND", "ID", "HOLD", "SINCE", "REASON"]);
        for line in lines {
            grid.add([
                line.account_id.to_owned(),
                line.kind.to_owned(),
                line.target.to_owned(),
                line.hold.to_owned(),
                line.since,
                or_dash(line.reason),
            ]);
        }
        print(&grid.take())?;
    }
    Ok(0)
}
