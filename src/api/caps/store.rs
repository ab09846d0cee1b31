//! Frequency caps where they are kept.

use crate::accounts::tables::accounts;
use crate::accounts::tables::caps::{self as table, CapRecord};
use crate::accounts::{CapRule, Directory};
use crate::api::app::App;
use crate::api::ask::{ask, change};
use crate::api::error::{ApiError, ApiResult, Code};
use crate::api::store::Store;
use crate::domain::AccountId;

/// The most caps of an account that are laid down here: each costs every message a look.
const MOST: usize = 50;

/// What became of a cap that was laid down.
pub(super) enum Put {
    /// It is new.
    Created,
    /// There was one of that name.
    Replaced,
    /// The account has as many as it may have.
    TooMany,
}

/// At most `count` caps, in the order of names, behind a name.
pub(super) async fn page(
    app: &App,
    account: &AccountId,
    after: Option<&str>,
    count: u16,
) -> ApiResult<Vec<CapRule>> {
    match &app.store {
        Store::Memory(_) => {
            let mut caps = caps_in_memory(&app.directory, account);
            caps.retain(|cap| after.is_none_or(|after| *cap.name > *after));
            caps.truncate(count.into());
            Ok(caps)
        }
        Store::Postgres(database) => {
            let page = ask(database, async |connection| {
                table::page(connection, account, after, count).await
            });
            Ok(page.await?.into_iter().map(|cap| cap.rule).collect())
        }
    }
}

/// The cap of that name.
pub(super) async fn find(app: &App, account: &AccountId, name: &str) -> ApiResult<Option<CapRule>> {
    match &app.store {
        Store::Memory(_) => {
            let caps = caps_in_memory(&app.directory, account);
            Ok(caps.into_iter().find(|cap| *cap.name == *name))
        }
        Store::Postgres(database) => {
            let found = ask(database, async |connection| {
                table::find(connection, account, name).await
            });
            Ok(found.await?.map(|cap| cap.rule))
        }
    }
}

/// Lays a cap down. An account that nobody has listed is listed by that, unless such accounts are
/// refused: then a key must not be a way around it.
pub(super) async fn put(app: &App, account: &AccountId, rule: CapRule) -> ApiResult<Put> {
    if app.directory.policy(account).is_none() {
        let message = "this account is not configured here";
        return Err(ApiError::new(Code::UnknownAccount, message));
    }
    let database = match &app.store {
        Store::Memory(_) => return put_in_memory(&app.directory, account, rule),
        Store::Postgres(database) => database,
    };
    let cap = CapRecord {
        account: account.clone(),
        rule,
    };
    change(database, async |connection| {
        accounts::enrol(connection, account).await?;
        let before = table::find(connection, account, &cap.rule.name).await?;
        if before.is_none() && table::count(connection, account).await? >= MOST {
            return Ok(Put::TooMany);
        }
        table::put(connection, std::slice::from_ref(&cap)).await?;
        Ok(if before.is_some() {
            Put::Replaced
        } else {
            Put::Created
        })
    })
    .await
}

/// Removes a cap; `false` when there was none of that name.
pub(super) async fn remove(app: &App, account: &AccountId, name: &str) -> ApiResult<bool> {
    match &app.store {
        Store::Memory(_) => {
            let removed = app.directory.change(account, |policy| {
                let before = policy.caps.len();
                policy.caps.retain(|cap| *cap.name != *name);
                policy.caps.len() < before
            });
            Ok(removed.unwrap_or(false))
        }
        Store::Postgres(database) => {
            ask(database, async |connection| {
                table::remove(connection, account, name).await
            })
            .await
        }
    }
}

/// The directory is where they are: no table is behind it. In the order of names.
fn caps_in_memory(directory: &Directory, account: &AccountId) -> Vec<CapRule> {
    let policy = directory.policy(account);
    policy.map_or_else(Vec::new, |policy| policy.caps.clone())
}

fn put_in_memory(directory: &Directory, account: &AccountId, rule: CapRule) -> ApiResult<Put> {
    let put = directory.change(account, |policy| {
        let caps = &mut policy.caps;
        match caps.binary_search_by(|cap| cap.name.cmp(&rule.name)) {
            Ok(place) => {
                caps[place] = rule;
                Put::Replaced
            }
            Err(_) if caps.len() >= MOST => Put::TooMany,
            Err(place) => {
                caps.insert(place, rule);
                Put::Created
            }
        }
    });
    put.ok_or_else(|| ApiError::new(Code::UnknownAccount, "this account is not configured here"))
}
