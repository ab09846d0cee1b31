//! `lanekeeper cap`: how often one recipient may be written to.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use sqlx::{Connection as _, PgConnection};

use super::age;
use super::tables::grid::{Grid, or_dash};
use super::tables::import::{ImportArgs, Imported, import};
use super::tables::output::{print, print_json};
use super::tables::problem::Problem;
use super::tables::session::{self, Session};
use super::tables::values::{cap_limit, cap_name, cap_window, id};
use super::tables::{CODES, IMPORT_CODES};
use super::values::{account, channel};
use crate::accounts::CapRule;
use crate::accounts::tables::TableError;
use crate::accounts::tables::accounts::Changed;
use crate::accounts::tables::caps::{self, CapRecord};
use crate::batch::{RowError, TableColumns, TableRow};
use crate::domain::{AccountId, Channel};
use crate::settings::Settings;

const HELP: &str = "\
Examples:
  lanekeeper cap set --account acme --name daily --limit 3 --window 24h
        nobody gets more than three messages of acme within any 24 hours
  lanekeeper cap set --account acme --name promo --limit 1 --window 7d \\
      --channel sms --category promotion
        and at most one promotional SMS within any 7 days
  lanekeeper cap list --account acme
  lanekeeper cap remove --account acme --name promo
  lanekeeper cap import caps.csv
        many at once; the columns are account, name, limit, window, channel
        and category

A job that a cap turns away ends as refused, frequency_cap. Where several caps concern a job, all of \
them must allow it. Workers follow within a second.";

const IMPORT_HELP: &str = "\
The first line names the columns, in any order; channel and category may be left out or empty:
  account,name,limit,window,channel,category
  acme,daily,3,24h,,
  acme,promo,1,7d,sms,promotion
A cap that is there already is replaced as a whole.";

/// Lay down how often one recipient may be written to.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Add a cap, or replace the one of that name as a whole.
    #[command(after_help = CODES)]
    Set(SetArgs),
    /// Show one cap.
    #[command(after_help = CODES)]
    Show {
        #[command(flatten)]
        named: Named,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// List caps.
    #[command(after_help = CODES)]
    List {
        /// Only those of this account
        #[arg(long, value_parser = account)]
        account: Option<AccountId>,
        /// Print one JSON object per cap
        #[arg(long)]
        json: bool,
    },
    /// Remove a cap.
    #[command(after_help = CODES)]
    Remove(Named),
    /// Add or replace many caps, from a CSV file.
    #[command(after_help = [IMPORT_HELP, "\n\n", IMPORT_CODES].concat())]
    Import(ImportArgs),
}

#[derive(Debug, clap::Args)]
struct Named {
    /// The account
    #[arg(long, value_parser = account)]
    account: AccountId,
    /// The cap's name: 1 to 64 of A-Z a-z 0-9 _ -
    #[arg(long, value_parser = cap_name)]
    name: String,
}

#[derive(Debug, clap::Args)]
struct SetArgs {
    #[command(flatten)]
    named: Named,
    /// How many messages one recipient may get within the window: 1 to 10000
    #[arg(long, value_name = "N", value_parser = cap_limit)]
    limit: u32,
    /// The rolling window: 90s, 30m, 24h, 7d; up to 366d
    #[arg(long, value_parser = cap_window)]
    window: Duration,
    /// Only messages on this channel
    #[arg(long, value_parser = channel)]
    channel: Option<Channel>,
    /// Only messages of this category
    #[arg(long, value_parser = id)]
    category: Option<String>,
    /// Print the cap as one JSON object
    #[arg(long)]
    json: bool,
}

/// A cap as it is shown.
#[derive(Debug, Serialize)]
pub(super) struct CapLine<'a> {
    account_id: &'a str,
    name: &'a str,
    limit: u32,
    window_seconds: u64,
    channel: Option<&'static str>,
    category: Option<&'a str>,
}

impl<'a> From<&'a CapRecord> for CapLine<'a> {
    fn from(cap: &'a CapRecord) -> Self {
        Self {
            account_id: cap.account.as_str(),
            name: &cap.rule.name,
            limit: cap.rule.limit,
            window_seconds: cap.rule.window.as_secs(),
            channel: cap.rule.channel.map(Channel::as_str),
            category: cap.rule.category.as_deref(),
        }
    }
}

impl CapLine<'_> {
    fn window(&self) -> String {
        age::exact(Duration::from_secs(self.window_seconds))
    }

    /// `daily: 3 in 1d, sms, category promotion`.
    pub(super) fn in_words(&self) -> String {
        let Self { name, limit, .. } = self;
        let channel = self.channel.unwrap_or("any channel");
        let category = self
            .category
            .map(|category| format!(", category {category}"));
        let category = category.unwrap_or_default();
        format!("{name}: {limit} in {}, {channel}{category}", self.window())
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
        Action::Set(args) => set(session, args).await,
        Action::Show { named, json } => show(session, named, json).await,
        Action::List { account, json } => {
            let caps = caps::list(&mut session.connection, account.as_ref()).await?;
            tell(&caps, json)
        }
        Action::Remove(named) => remove(session, named).await,
        Action::Import(args) => import(session, args, Caps).await,
    }
}

async fn set(session: &mut Session, args: SetArgs) -> Result<u8, Problem> {
    let cap = CapRecord {
        account: args.named.account,
        rule: CapRule {
            name: Arc::from(args.named.name),
            channel: args.channel,
            category: args.category.map(Into::into),
            limit: args.limit,
            window: args.window,
        },
    };
    let mut transaction = session.connection.begin().await?;
    caps::put(&mut transaction, std::slice::from_ref(&cap)).await?;
    transaction.commit().await?;
    tell(&[cap], args.json)
}

async fn show(session: &mut Session, named: Named, json: bool) -> Result<u8, Problem> {
    let mut caps = caps::list(&mut session.connection, Some(&named.account)).await?;
    caps.retain(|cap| *cap.rule.name == *named.name);
    if caps.is_empty() {
        return Err(no_such_cap(&named));
    }
    tell(&caps, json)
}

async fn remove(session: &mut Session, named: Named) -> Result<u8, Problem> {
    if !caps::remove(&mut session.connection, &named.account, &named.name).await? {
        return Err(no_such_cap(&named));
    }
    let Named { account, name } = named;
    print(&format!("{account}: cap {name} removed\n"))?;
    Ok(0)
}

fn no_such_cap(Named { account, name }: &Named) -> Problem {
    Problem::NotThere(format!(
        "account {account} has no cap {name}; `lanekeeper cap list --account {account}` shows what \
         there is"
    ))
}

fn tell(caps: &[CapRecord], json: bool) -> Result<u8, Problem> {
    let lines = caps.iter().map(CapLine::from);
    if json {
        print_json(lines)?;
    } else if caps.is_empty() {
        print("No caps: `lanekeeper cap set` adds one.\n")?;
    } else {
        let head = ["ACCOUNT", "NAME", "LIMIT", "WINDOW", "CHANNEL", "CATEGORY"];
        let mut grid = Grid::new(head).right(2).right(3);
        for line in lines {
            grid.add([
                line.account_id.to_owned(),
                line.name.to_owned(),
                line.limit.to_string(),
                line.window(),
                line.channel.unwrap_or("any").to_owned(),
                or_dash(line.category),
            ]);
        }
        print(&grid.take())?;
    }
    Ok(0)
}

/// Caps in a CSV file.
struct Caps;

impl Imported for Caps {
    type Row = CapRecord;

    const COLUMNS: TableColumns = TableColumns {
        required: &["account", "name", "limit", "window"],
        optional: &["channel", "category"],
    };

    fn read(&self, row: &TableRow<'_>) -> Result<CapRecord, RowError> {
        Ok(CapRecord {
            account: row.required_parsed("account", account)?,
            rule: CapRule {
                name: row.required_parsed("name", cap_name)?.into(),
                channel: row.parsed("channel", channel)?,
                category: row.parsed("category", id)?.map(Into::into),
                limit: row.required_parsed("limit", cap_limit)?,
                window: row.required_parsed("window", cap_window)?,
            },
        })
    }

    fn key(cap: &CapRecord) -> Option<String> {
        Some(format!("{} {}", cap.account, cap.rule.name))
    }

    async fn write(
        &self,
        connection: &mut PgConnection,
        rows: &[CapRecord],
    ) -> Result<Changed, TableError> {
        caps::put(connection, rows).await
    }
}
