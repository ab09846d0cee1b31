//! `lanekeeper ceiling`: messages per second of one sender number or messaging service.

use std::process::ExitCode;

use serde::Serialize;
use sqlx::{Connection as _, PgConnection};

use super::tables::grid::Grid;
use super::tables::import::{ImportArgs, Imported, import};
use super::tables::output::{print, print_json};
use super::tables::problem::Problem;
use super::tables::session::{self, Session};
use super::tables::values::{id, rate};
use super::tables::{CODES, IMPORT_CODES};
use super::values::account;
use crate::accounts::tables::TableError;
use crate::accounts::tables::accounts::Changed;
use crate::accounts::tables::ceilings::{self, CeilingKind, CeilingRecord};
use crate::batch::{RowError, TableColumns, TableRow};
use crate::domain::{AccountId, normalise_sender};
use crate::settings::Settings;

const HELP: &str = "\
Examples:
  lanekeeper ceiling set --account acme --number \"+44 7700 900123\" --per-second 1
        not more than one message a second from this number
  lanekeeper ceiling set --account acme --service newsletter --per-second 20
        not more than 20 a second through this messaging service
  lanekeeper ceiling list --account acme
  lanekeeper ceiling remove --account acme --number +447700900123
  lanekeeper ceiling import ceilings.csv
        many at once; the columns are account, number, service and per_second

Ceilings count messages, whatever their length, in both lanes together and within the account's \
budget. What comes above one waits for its turn; the account's other numbers and services go on. A \
sender that is no international number is compared as it stands. Workers follow within a second.";

const IMPORT_HELP: &str = "\
The first line names the columns, in any order; each row has a number or a service:
  account,number,service,per_second
  acme,+447700900123,,1
  acme,,newsletter,20
A ceiling that is there already is replaced.";

/// Lay down how much one sender number or messaging service may carry.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Add or replace a ceiling.
    #[command(after_help = CODES)]
    Set {
        #[command(flatten)]
        of: Of,
        /// Messages per second, from 1
        #[arg(long, value_name = "N", value_parser = rate)]
        per_second: u32,
        /// Print the ceiling as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Show one ceiling.
    #[command(after_help = CODES)]
    Show {
        #[command(flatten)]
        of: Of,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// List ceilings.
    #[command(after_help = CODES)]
    List {
        /// Only those of this account
        #[arg(long, value_parser = account)]
        account: Option<AccountId>,
        /// Print one JSON object per ceiling
        #[arg(long)]
        json: bool,
    },
    /// Remove a ceiling.
    #[command(after_help = CODES)]
    Remove(Of),
    /// Add or replace many ceilings, from a CSV file.
    #[command(after_help = [IMPORT_HELP, "\n\n", IMPORT_CODES].concat())]
    Import(ImportArgs),
}

#[derive(Debug, clap::Args)]
struct Of {
    /// The account
    #[arg(long, value_parser = account)]
    account: AccountId,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Target {
    /// The sender, as jobs have it in `from`
    #[arg(long, value_parser = id)]
    number: Option<String>,
    /// The messaging service, as jobs have it in `service_id`
    #[arg(long, value_parser = id)]
    service: Option<String>,
}

impl Target {
    fn kind_and_name(self) -> (CeilingKind, String) {
        match (self.number, self.service) {
            (Some(number), _) => (CeilingKind::Number, normalise_sender(&number)),
            (None, service) => (CeilingKind::Service, service.unwrap_or_default()),
        }
    }
}

/// A ceiling as it is shown.
#[derive(Debug, Serialize)]
pub(super) struct CeilingLine<'a> {
    account_id: &'a str,
    kind: &'static str,
    target: &'a str,
    per_second: u32,
}

impl<'a> From<&'a CeilingRecord> for CeilingLine<'a> {
    fn from(ceiling: &'a CeilingRecord) -> Self {
        Self {
            account_id: ceiling.account.as_str(),
            kind: ceiling.kind.as_str(),
            target: &ceiling.target,
            per_second: ceiling.per_second,
        }
    }
}

impl CeilingLine<'_> {
    /// `number +447700900123: 1 per second`.
    pub(super) fn in_words(&self) -> String {
        let Self { kind, target, .. } = self;
        format!("{kind} {target}: {} per second", self.per_second)
    }
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
            of,
            per_second,
            json,
        } => set(session, of, per_second, json).await,
        Action::Show { of, json } => show(session, of, json).await,
        Action::List { account, json } => {
            let ceilings = ceilings::list(&mut session.connection, account.as_ref()).await?;
            tell(&ceilings, json)
        }
        Action::Remove(of) => remove(session, of).await,
        Action::Import(args) => import(session, args, CeilingRows).await,
    }
}

async fn set(session: &mut Session, of: Of, per_second: u32, json: bool) -> Result<u8, Problem> {
    let (kind, target) = of.target.kind_and_name();
    let ceiling = CeilingRecord {
        account: of.account,
        kind,
        target,
        per_second,
    };
    let mut transaction = session.connection.begin().await?;
    ceilings::put(&mut transaction, std::slice::from_ref(&ceiling)).await?;
    transaction.commit().await?;
    tell(&[ceiling], json)
}

async fn show(session: &mut Session, of: Of, json: bool) -> Result<u8, Problem> {
    let (kind, target) = of.target.kind_and_name();
    let mut ceilings = ceilings::list(&mut session.connection, Some(&of.account)).await?;
    ceilings.retain(|ceiling| ceiling.kind == kind && ceiling.target == target);
    if ceilings.is_empty() {
        return Err(no_such_ceiling(&of.account, kind));
    }
    tell(&ceilings, json)
}

async fn remove(session: &mut Session, of: Of) -> Result<u8, Problem> {
    let (kind, target) = of.target.kind_and_name();
    let account = &of.account;
    if !ceilings::remove(&mut session.connection, account, kind, &target).await? {
        return Err(no_such_ceiling(account, kind));
    }
    print(&format!(
        "{account}: the ceiling of that {} is removed\n",
        kind.as_str()
    ))?;
    Ok(0)
}

fn no_such_ceiling(account: &AccountId, kind: CeilingKind) -> Problem {
    let kind = kind.as_str();
    Problem::NotThere(format!(
        "account {account} has no ceiling of that {kind}; `lanekeeper ceiling list --account \
         {account}` shows what there is"
    ))
}

fn tell(ceilings: &[CeilingRecord], json: bool) -> Result<u8, Problem> {
    let lines = ceilings.iter().map(CeilingLine::from);
    if json {
        print_json(lines)?;
    } else if ceilings.is_empty() {
        print("No ceilings: `lanekeeper ceiling set` adds one.\n")?;
    } else {
        let mut grid = Grid::new(["ACCOUNT", "KIND", "OF", "PER SECOND"]).right(3);
        for line in lines {
            grid.add([
                line.account_id.to_owned(),
                line.kind.to_owned(),
                line.target.to_owned(),
                line.per_second.to_string(),
            ]);
        }
        print(&grid.take())?;
    }
    Ok(0)
}

/// Ceilings in a CSV file.
struct CeilingRows;

impl Imported for CeilingRows {
    type Row = CeilingRecord;

    const COLUMNS: TableColumns = TableColumns {
        required: &["account", "per_second"],
        optional: &["number", "service"],
    };

    fn read(&self, row: &TableRow<'_>) -> Result<CeilingRecord, RowError> {
        let number = row.number("number")?.map(id).transpose();
        let target = Target {
            number: number.map_err(|error| row.error("number", error))?,
            service: row.parsed("service", id)?,
        };
        if target.number.is_some() == target.service.is_some() {
            return Err(row.error("row", "expected either a number or a service"));
        }
        let (kind, target) = target.kind_and_name();
        Ok(CeilingRecord {
            account: row.required_parsed("account", account)?,
            kind,
            target,
            per_second: row.required_parsed("per_second", rate)?,
        })
    }

    fn key(ceiling: &CeilingRecord) -> Option<String> {
        let CeilingRecord {
            account, target, ..
        } = ceiling;
        Some(format!("{account} {} {target}", ceiling.kind.as_str()))
    }

    async fn write(
        &self,
        connection: &mut PgConnection,
        rows: &[CeilingRecord],
    ) -> Result<Changed, TableError> {
        ceilings::put(connection, rows).await
    }
}
