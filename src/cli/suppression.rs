//! `lanekeeper suppression`: who must not be written to.

mod file;
mod list;
mod recipients;

use std::process::ExitCode;

use serde::Serialize;

use super::tables::import::{ImportArgs, import};
use super::tables::output::{counted, print, print_json};
use super::tables::problem::Problem;
use super::tables::session::{self, Session};
use super::tables::values::{id, scope};
use super::tables::{CODES, IMPORT_CODES};
use super::values::{account, region};
use crate::accounts::tables::suppressions::{self, OptOut};
use crate::domain::{AccountId, Region, Scope};
use crate::settings::Settings;

use recipients::Typed;

const HELP: &str = "\
Examples:
  lanekeeper suppression add --account acme \"+44 7700 900123\" --source \"call\"
        nothing of acme goes to this number any more, on any channel
  lanekeeper suppression add --account acme ann@example.org
        no e-mail to this address
  lanekeeper suppression show --account acme +447700900123
        whether a recipient has opted out, of what, since when and how
  lanekeeper suppression import --account acme optouts.csv
        many at once; the columns are recipient, scope and source
  lanekeeper suppression remove --account acme +447700900123
        the recipient wants messages again

Opt-outs are looked at first, in both lanes: no priority passes them. Without a scope a telephone \
number is written down for all channels, and an e-mail address for e-mail. Numbers are kept in \
international form and addresses in small letters, as jobs are compared with them: exactly.";

const IMPORT_HELP: &str = "\
The first line names the columns, in any order; only recipient must be there:
  recipient,scope,source
  +44 7700 900123,,call centre
  ann@example.org,email,unsubscribe link
Opt-outs that are there already stay as they are. All rows are written, or none.";

/// Lay down who must not be written to.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Write down that recipients have opted out.
    #[command(visible_alias = "set", after_help = CODES)]
    Add(AddArgs),
    /// Remove opt-outs: the recipients may be written to again.
    #[command(after_help = CODES)]
    Remove(ChosenArgs),
    /// Show whether a recipient has opted out, and of what.
    #[command(after_help = CODES)]
    Show(list::ShowArgs),
    /// List an account's opt-outs, in the order of recipients.
    #[command(after_help = CODES)]
    List(list::ListArgs),
    /// Write down many opt-outs, from a CSV file.
    #[command(after_help = [IMPORT_HELP, "\n\n", IMPORT_CODES].concat())]
    Import(FileArgs),
}

#[derive(Debug, clap::Args)]
struct AddArgs {
    #[command(flatten)]
    chosen: ChosenArgs,
    /// Where the opt-outs came from, for those who look later
    #[arg(long, value_parser = id)]
    source: Option<String>,
}

/// Recipients, as they are typed.
#[derive(Debug, clap::Args)]
struct ChosenArgs {
    /// The account
    #[arg(long, value_parser = account)]
    account: AccountId,
    /// Telephone numbers, e-mail addresses, or ids of the scope's channel
    #[arg(required = true, value_name = "RECIPIENT")]
    recipients: Vec<String>,
    #[command(flatten)]
    reading: ReadingArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// How recipients are read.
#[derive(Debug, Clone, Copy, clap::Args)]
struct ReadingArgs {
    /// all, or the channel that it concerns
    #[arg(long, value_parser = scope)]
    scope: Option<Scope>,
    /// The country of numbers without a country code, instead of `jobs.default_region`
    #[arg(long, value_name = "COUNTRY", value_parser = region)]
    region: Option<Region>,
}

#[derive(Debug, clap::Args)]
struct FileArgs {
    /// The account
    #[arg(long, value_parser = account)]
    account: AccountId,
    /// The source of rows that name none
    #[arg(long, value_parser = id)]
    source: Option<String>,
    #[command(flatten)]
    reading: ReadingArgs,
    #[command(flatten)]
    import: ImportArgs,
}

#[derive(Serialize)]
struct Done<'a> {
    account_id: &'a str,
    recipients: usize,
    #[serde(flatten)]
    figures: Figures,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Figures {
    Added { added: u64, there_already: u64 },
    Removed { removed: u64 },
}

/// Runs the command, and gives its exit code.
///
/// # Errors
/// Never: what goes wrong is told, and has an exit code.
pub async fn run(settings: Settings, args: Args) -> anyhow::Result<ExitCode> {
    Ok(session::run(settings, async |session| {
        carry_out(session, args.action).await
    })
    .await)
}

async fn carry_out(session: &mut Session, action: Action) -> Result<u8, Problem> {
    match action {
        Action::Add(args) => add(session, args).await,
        Action::Remove(args) => remove(session, args).await,
        Action::Show(args) => list::show(session, args).await,
        Action::List(args) => list::list(session, args).await,
        Action::Import(args) => {
            let rows = file::OptOuts {
                account: args.account,
                source: args.source,
                typed: Typed::of(args.reading, session),
            };
            import(session, args.import, rows).await
        }
    }
}

async fn add(session: &mut Session, args: AddArgs) -> Result<u8, Problem> {
    let AddArgs { chosen, source } = args;
    let typed = Typed::of(chosen.reading, session);
    let read = typed.keys(&chosen.recipients)?;
    let opt_outs: Vec<_> = read
        .into_iter()
        .map(|(recipient, scope)| OptOut {
            recipient,
            scope,
            source: source.clone(),
        })
        .collect();
    let added = suppressions::add(&mut session.connection, &chosen.account, &opt_outs).await?;
    let there_already = opt_outs.len() as u64 - added;
    let figures = Figures::Added {
        added,
        there_already,
    };
    tell(&chosen, figures)
}

async fn remove(session: &mut Session, args: ChosenArgs) -> Result<u8, Problem> {
    let typed = Typed::of(args.reading, session);
    let read = typed.keys(&args.recipients)?;
    let recipients: Vec<_> = read.into_iter().map(|(recipient, _)| recipient).collect();
    let connection = &mut session.connection;
    let scope = args.reading.scope;
    let removed = suppressions::remove(connection, &args.account, &recipients, scope).await?;
    tell(&args, Figures::Removed { removed })
}

fn tell(chosen: &ChosenArgs, figures: Figures) -> Result<u8, Problem> {
    let is_nothing = matches!(figures, Figures::Removed { removed: 0 });
    let account = &chosen.account;
    if chosen.json {
        let recipients = chosen.recipients.len();
        print_json([Done {
            account_id: account.as_str(),
            recipients,
            figures,
        }])?;
    } else {
        print(&format!("{account}: {}\n", figures.in_words()))?;
    }
    Ok(if is_nothing { 3 } else { 0 })
}

impl Figures {
    fn in_words(&self) -> String {
        let opt_outs = |count| counted(count, "opt-out", "opt-outs");
        match *self {
            Self::Added {
                added,
                there_already: 0,
            } => format!("{} added", opt_outs(added)),
            Self::Added {
                added,
                there_already,
            } => format!("{} added, {there_already} there already", opt_outs(added)),
            Self::Removed { removed: 0 } => "no such opt-out; nothing was removed".to_owned(),
            Self::Removed { removed } => format!("{} removed", opt_outs(removed)),
        }
    }
}
