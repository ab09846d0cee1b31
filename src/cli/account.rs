//! `lanekeeper account`: budgets, quiet hours, and what happens to accounts that nobody has listed.

mod change;
mod file;
mod list;
mod show;
mod unknown;
mod view;

use std::process::ExitCode;

use sqlx::Connection as _;

use super::tables::import::{ImportArgs, import};
use super::tables::output::{counted, print};
use super::tables::problem::Problem;
use super::tables::session::{self, Session};
use super::tables::{CODES, IMPORT_CODES};
use super::values::account;
use crate::accounts::tables::accounts;
use crate::domain::AccountId;
use crate::settings::Settings;

use change::ChangeArgs;

const HELP: &str = "\
Examples:
  lanekeeper account set acme --budget 250 --reserve 30
        250 messages a second, 30 % of them for the transactional lane alone
  lanekeeper account set acme --quiet-hours on --time-zone Europe/London
        send only in the hours that are standard for each channel, by the clock
        of the recipient; by London's where that is not known
  lanekeeper account set acme --window sms=10:00-18:00 voice=off
        other hours for SMS, any hour for calls
  lanekeeper account set acme --quiet-action defer
        what comes at night waits for the morning instead of being refused
  lanekeeper account set acme --budget default
        back to what the settings say
  lanekeeper account unknown refuse
        refuse the jobs of accounts that nobody has listed
  lanekeeper account import accounts.csv
        many at once; the columns are account, budget, reserve, quiet_hours,
        quiet_action, time_zone and window, of which an empty cell changes nothing

Workers follow within a second. What the database does not say of an account, the settings do.";

const IMPORT_HELP: &str = "\
The first line names the columns, in any order; only account must be there:
  account,budget,reserve,quiet_hours,quiet_action,time_zone,window
  acme,250,30,on,defer,Europe/London,sms=10:00-18:00 voice=off
  other,default,,,,,
An empty cell changes nothing. Importing the same file again changes nothing.";

/// Lay down budgets and quiet hours of accounts.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Add an account, or change what is named of it.
    #[command(after_help = CODES)]
    Set {
        /// The account's id
        #[arg(value_parser = account)]
        account: AccountId,
        #[command(flatten)]
        change: ChangeArgs,
        /// Print the account as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Show all that is laid down for an account, with its caps, ceilings and holds.
    #[command(after_help = CODES)]
    Show {
        /// The account's id
        #[arg(value_parser = account)]
        account: AccountId,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// List the accounts of the database, in the order of their ids.
    #[command(after_help = CODES)]
    List {
        /// Print one JSON object per account
        #[arg(long)]
        json: bool,
    },
    /// Remove an account with its caps and ceilings; opt-outs and holds stay.
    #[command(after_help = CODES)]
    Remove {
        /// The account's id
        #[arg(value_parser = account)]
        account: AccountId,
    },
    /// Show or lay down what happens to accounts that are not listed.
    #[command(after_help = CODES)]
    Unknown(unknown::Args),
    /// Add or change many accounts, from a CSV file.
    #[command(after_help = [IMPORT_HELP, "\n\n", IMPORT_CODES].concat())]
    Import(ImportArgs),
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
        Action::Set {
            account,
            change,
            json,
        } => set(session, account, change, json).await,
        Action::Show { account, json } => show::run(session, &account, json).await,
        Action::List { json } => list::run(session, json).await,
        Action::Remove { account } => remove(session, &account).await,
        Action::Unknown(args) => unknown::run(session, args).await,
        Action::Import(args) => import(session, args, file::Accounts).await,
    }
}

async fn set(
    session: &mut Session,
    account: AccountId,
    change: ChangeArgs,
    json: bool,
) -> Result<u8, Problem> {
    let changes = [(account, change.into())];
    let mut transaction = session.connection.begin().await?;
    accounts::change(&mut transaction, &changes).await?;
    transaction.commit().await?;
    let [(account, _)] = changes;
    show::run(session, &account, json).await
}

async fn remove(session: &mut Session, account: &AccountId) -> Result<u8, Problem> {
    let view = view::View::read(session, account).await?;
    if !accounts::remove(&mut session.connection, account).await? {
        return Err(view::no_such_account(account));
    }
    let (caps, ceilings) = view.counts();
    let caps = counted(caps, "cap", "caps");
    let ceilings = counted(ceilings, "ceiling", "ceilings");
    print(&format!("{account}: removed, with {caps} and {ceilings}\n"))?;
    Ok(0)
}
