//! `lanekeeper key`: the keys by which programs are let in to the HTTP API.

use std::process::ExitCode;

use serde::Serialize;

use super::tables::CODES;
use super::tables::grid::{Grid, or_dash};
use super::tables::output::{print, print_json};
use super::tables::problem::Problem;
use super::tables::session::{self, Session};
use super::tables::values::{id, key_scope};
use super::values::{account, origin};
use crate::accounts::keys::{ApiKey, KeyGrant, KeyId, KeyScope, StoredKey};
use crate::accounts::tables::keys::{self, KeyRecord, Revoked};
use crate::domain::{AccountId, Origin};
use crate::settings::{Secret, Settings};

const HELP: &str = "\
Examples:
  lanekeeper key create --account acme --name \"web shop\"
        a key that may send, and see what became of what it sent; it is
        shown this once
  lanekeeper key create --account acme --name \"spring tool\" --origin campaign
        what is sent with it is marketing, unless the message says otherwise
  lanekeeper key list --account acme
  lanekeeper key revoke abcdefgh2345
        the id of the key, as the list has it

A key is lk_<key id>_<secret>, and belongs to one account. Only a digest of the secret is kept: a key \
that is lost cannot be shown again, but another can be made. To change a key, make a second one, have \
the program use it, and revoke the first. Every server of the HTTP API follows within a second.";

const CREATE_HELP: &str = "\
Scopes:
  send   send messages
  read   see what became of messages, and what would become of them
  admin  change what is laid down for the account: opt-outs, caps, pauses
None includes another: a key for all of it is made with --scope send,read,admin.";

const REVOKE_HELP: &str = "\
A whole key may be given instead of its id, for one that has turned up where it should not be. It is \
not shown again. While a server of the HTTP API cannot reach the database, it goes on accepting the \
keys that it knows.";

/// Make and revoke the keys by which programs are let in to the HTTP API.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Make a key, and show it this once.
    #[command(after_help = [CREATE_HELP, "\n\n", CODES].concat())]
    Create(CreateArgs),
    /// List keys, without their secrets; revoked ones as well.
    #[command(after_help = CODES)]
    List {
        /// Only those of this account
        #[arg(long, value_parser = account)]
        account: Option<AccountId>,
        /// Print one JSON object per key
        #[arg(long)]
        json: bool,
    },
    /// Have a key accepted no longer, for ever.
    #[command(after_help = [REVOKE_HELP, "\n\n", CODES].concat())]
    Revoke {
        // Read by hand: clap would repeat in its error what may be a secret.
        /// The key's id
        #[arg(value_name = "KEY_ID", value_parser = secret)]
        key: Secret,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, clap::Args)]
struct CreateArgs {
    /// The account that it belongs to
    #[arg(long, value_parser = account)]
    account: AccountId,
    /// What it is for, for those who look later
    #[arg(long, value_parser = id)]
    name: String,
    /// What it allows: one or more of send, read and admin
    #[arg(long, value_name = "SCOPES", value_delimiter = ',', value_parser = key_scope,
        default_value = "send,read")]
    scope: Vec<KeyScope>,
    /// Where what is sent with it comes from: api, campaign or journey. It decides the lane of
    /// messages that say nothing about it
    #[arg(long, value_parser = origin, default_value = Origin::Api.as_str())]
    origin: Origin,
    /// Print the key as one JSON object
    #[arg(long)]
    json: bool,
}

#[expect(clippy::unnecessary_wraps, reason = "clap wants a result")]
fn secret(text: &str) -> Result<Secret, String> {
    Ok(Secret::new(text))
}

/// A key as it is shown.
#[derive(Debug, Serialize)]
struct KeyLine<'a> {
    key_id: String,
    account_id: &'a str,
    name: &'a str,
    scopes: Vec<&'static str>,
    origin: &'static str,
    created_at: String,
    revoked_at: Option<String>,
}

/// A key that has just been made. Without `Debug`: it has the secret.
#[derive(Serialize)]
struct CreatedLine<'a> {
    #[serde(flatten)]
    line: KeyLine<'a>,
    key: String,
}

impl<'a> From<&'a KeyRecord> for KeyLine<'a> {
    fn from(record: &'a KeyRecord) -> Self {
        Self {
            key_id: record.id.to_string(),
            account_id: record.account.as_str(),
            name: &record.name,
            scopes: record.scopes.names(),
            origin: record.origin.as_str(),
            created_at: record.created.to_string(),
            revoked_at: record.revoked.map(|since| since.to_string()),
        }
    }
}

/// What became of a key that was to be revoked.
#[derive(Debug, Serialize)]
struct RevokedLine<'a> {
    key_id: String,
    account_id: &'a str,
    name: &'a str,
    revoked_at: String,
    already: bool,
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
        Action::Create(args) => create(session, args).await,
        Action::List { account, json } => {
            let keys = keys::list(&mut session.connection, account.as_ref()).await?;
            tell(&keys, json)
        }
        Action::Revoke { key, json } => revoke(session, &key, json).await,
    }
}

async fn create(session: &mut Session, args: CreateArgs) -> Result<u8, Problem> {
    let key = ApiKey::generate()?;
    let grant = KeyGrant {
        key: key.id(),
        account: args.account,
        scopes: args.scope.into_iter().collect(),
        origin: args.origin,
    };
    let stored = StoredKey::new(&key, grant);
    let record = keys::create(&mut session.connection, &stored, &args.name).await?;
    let shown = key.expose();
    if args.json {
        print_json([CreatedLine {
            line: KeyLine::from(&record),
            key: shown,
        }])?;
    } else {
        print(&format!(
            "{shown}\n\nThis is the only time that the key is shown: keep it where secrets are \
             kept. The list names it {}.\n",
            key.id()
        ))?;
    }
    Ok(0)
}

fn tell(keys: &[KeyRecord], json: bool) -> Result<u8, Problem> {
    let lines = keys.iter().map(KeyLine::from);
    if json {
        print_json(lines)?;
    } else if keys.is_empty() {
        print("No keys: `lanekeeper key create` makes one.\n")?;
    } else {
        let mut grid = Grid::new([
            "KEY ID", "ACCOUNT", "NAME", "SCOPES", "ORIGIN", "CREATED", "REVOKED",
        ]);
        for line in lines {
            grid.add([
                line.key_id,
                line.account_id.to_owned(),
                line.name.to_owned(),
                line.scopes.join(","),
                line.origin.to_owned(),
                line.created_at,
                or_dash(line.revoked_at),
            ]);
        }
        print(&grid.take())?;
    }
    Ok(0)
}

async fn revoke(session: &mut Session, named: &Secret, json: bool) -> Result<u8, Problem> {
    let id = id_of(named.expose())?;
    let Some(revoked) = keys::revoke(&mut session.connection, id).await? else {
        return Err(Problem::NotThere(format!(
            "there is no key {id}; `lanekeeper key list` shows what there is"
        )));
    };
    let Revoked {
        account_id,
        name,
        since,
        already,
    } = &revoked;
    if json {
        print_json([RevokedLine {
            key_id: id.to_string(),
            account_id,
            name,
            revoked_at: since.to_string(),
            already: *already,
        }])?;
    } else {
        let name = super::escape::line(name);
        let how = if *already {
            format!("was revoked already, {since}")
        } else {
            "revoked".to_owned()
        };
        print(&format!("{account_id}: key {id} ({name}) {how}\n"))?;
    }
    Ok(0)
}

/// The id, or that of a whole key. What is neither is not repeated: it may be most of a key.
fn id_of(named: &str) -> Result<KeyId, Problem> {
    let named = named.as_bytes();
    let of_whole = || ApiKey::parse(named).ok().map(|key| key.id());
    KeyId::parse(named).or_else(of_whole).ok_or_else(|| {
        Problem::Usage(
            "expected a key's id, 12 characters of a-z and 2-7, as `lanekeeper key list` has it"
                .to_owned(),
        )
    })
}
