//! `lanekeeper suppression show` and `list`. Both print recipients, because they were asked to.

use indicatif::HumanCount;
use serde::Serialize;

use super::ReadingArgs;
use super::recipients::Typed;
use crate::accounts::tables::suppressions::{self, Suppression};
use crate::cli::tables::grid::{Grid, or_dash};
use crate::cli::tables::output::{print, print_json};
use crate::cli::tables::problem::Problem;
use crate::cli::tables::session::Session;
use crate::cli::tables::values::scope;
use crate::cli::values::account;
use crate::domain::{AccountId, Scope};

/// So many are read and shown at a time.
const PAGE: u16 = 1_000;
/// The most that are shown as a table where nobody says how many.
const SHOWN: u64 = 100;

/// Whose opt-outs to show.
#[derive(Debug, clap::Args)]
pub(super) struct ShowArgs {
    /// The account
    #[arg(long, value_parser = account)]
    account: AccountId,
    /// A telephone number, an e-mail address, or an id of the scope's channel
    recipient: String,
    #[command(flatten)]
    reading: ReadingArgs,
    /// Print one JSON object per opt-out
    #[arg(long)]
    json: bool,
}

/// Which opt-outs to list.
#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// The account
    #[arg(long, value_parser = account)]
    account: AccountId,
    /// Only those of this scope
    #[arg(long, value_parser = scope)]
    scope: Option<Scope>,
    /// The most to show; 100 in a table, and with --json all
    #[arg(long, value_name = "COUNT")]
    limit: Option<u64>,
    /// Print one JSON object per opt-out
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Line<'a> {
    recipient: &'a str,
    scope: &'a str,
    source: Option<&'a str>,
    since: String,
}

impl<'a> From<&'a Suppression> for Line<'a> {
    fn from(opt_out: &'a Suppression) -> Self {
        Self {
            recipient: &opt_out.recipient,
            scope: &opt_out.scope,
            source: opt_out.source.as_deref(),
            since: opt_out.since.to_string(),
        }
    }
}

fn grid() -> Grid<4> {
    Grid::new(["RECIPIENT", "SCOPE", "SINCE", "SOURCE"])
}

fn row(line: Line<'_>) -> [String; 4] {
    [
        line.recipient.to_owned(),
        line.scope.to_owned(),
        line.since,
        or_dash(line.source),
    ]
}

pub(super) async fn show(session: &mut Session, args: ShowArgs) -> Result<u8, Problem> {
    let typed = Typed::of(args.reading, session);
    let keys = typed.keys(std::slice::from_ref(&args.recipient))?;
    let mut found = Vec::new();
    for (recipient, _) in keys {
        let connection = &mut session.connection;
        found.extend(suppressions::of_recipient(connection, &args.account, &recipient).await?);
    }
    if let Some(scope) = typed.scope {
        found.retain(|opt_out| opt_out.scope == scope.as_str());
    }
    if args.json {
        print_json(found.iter().map(Line::from))?;
    } else if found.is_empty() {
        print("not suppressed\n")?;
    } else {
        let mut grid = grid();
        for opt_out in &found {
            grid.add(row(opt_out.into()));
        }
        print(&grid.take())?;
    }
    Ok(if found.is_empty() { 3 } else { 0 })
}

pub(super) async fn list(session: &mut Session, args: ListArgs) -> Result<u8, Problem> {
    let default = if args.json { u64::MAX } else { SHOWN };
    let mut left = args.limit.unwrap_or(default);
    let mut grid = grid();
    let mut last: Option<Suppression> = None;
    while left > 0 {
        let count = u16::try_from(left).unwrap_or(PAGE).min(PAGE);
        let connection = &mut session.connection;
        let after = last.as_ref().map(|last| (&*last.recipient, &*last.scope));
        let page = suppressions::page(connection, &args.account, args.scope, after, count).await?;
        let lines = page.iter().map(Line::from);
        let is_heard = if args.json {
            print_json(lines)?
        } else {
            lines.for_each(|line| grid.add(row(line)));
            page.is_empty() || print(&grid.take())?
        };
        left -= page.len() as u64;
        let is_end = page.len() < usize::from(count);
        last = page.into_iter().last().or(last);
        if is_end || !is_heard {
            break;
        }
    }
    if !args.json {
        sum_up(session, &args, last.is_some(), left).await?;
    }
    Ok(0)
}

async fn sum_up(
    session: &mut Session,
    args: &ListArgs,
    is_shown: bool,
    left: u64,
) -> Result<(), Problem> {
    let ListArgs { account, scope, .. } = args;
    if left > 0 && !is_shown {
        print(&format!("{account} has no such opt-outs.\n"))?;
    }
    if left == 0 {
        let count = suppressions::count(&mut session.connection, account, *scope).await?;
        let count = HumanCount(count);
        print(&format!(
            "\n{count} opt-outs in all; --limit shows more of them\n"
        ))?;
    }
    Ok(())
}
