//! `lanekeeper account unknown`: accounts that are not listed.

use serde::Serialize;

use crate::accounts::tables::accounts;
use crate::cli::tables::output::{print, print_json};
use crate::cli::tables::problem::Problem;
use crate::cli::tables::session::Session;
use crate::settings::UnknownAccount;

/// What is to happen to them.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// default: they have the default budget; refuse: their jobs end as refused; settings: as
    /// `accounts.unknown` says. Without it, what holds now is shown
    #[arg(value_name = "default|refuse|settings", value_parser = policy)]
    policy: Option<Policy>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// `None`: as the settings say.
#[derive(Debug, Clone, Copy)]
struct Policy(Option<UnknownAccount>);

fn policy(text: &str) -> Result<Policy, String> {
    if text == "settings" {
        return Ok(Policy(None));
    }
    UnknownAccount::parse(text)
        .map(|policy| Policy(Some(policy)))
        .ok_or_else(|| "expected default, refuse or settings".to_owned())
}

#[derive(Serialize)]
struct Line {
    unknown_accounts: &'static str,
    from: &'static str,
}

pub(super) async fn run(session: &mut Session, args: Args) -> Result<u8, Problem> {
    if let Some(Policy(policy)) = args.policy {
        accounts::set_unknown(&mut session.connection, policy).await?;
    }
    let stored = accounts::unknown(&mut session.connection).await?;
    let from = stored.map_or("settings", |_| "database");
    let policy = stored.unwrap_or(session.settings.accounts.unknown);
    if args.json {
        let unknown_accounts = policy.as_str();
        print_json([Line {
            unknown_accounts,
            from,
        }])?;
        return Ok(0);
    }
    let what = match policy {
        UnknownAccount::Default => "have the default budget",
        UnknownAccount::Refuse => "are refused",
    };
    print(&format!("accounts that are not listed {what} ({from})\n"))?;
    Ok(0)
}
