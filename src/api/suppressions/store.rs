//! Opt-outs where they are kept.

use crate::accounts::tables::suppressions::{self as table, OptOut, Suppression};
use crate::api::ask::{ask, change, glance};
use crate::api::error::ApiResult;
use crate::api::paging::{cursor, cut};
use crate::api::store::Store;
use crate::domain::{AccountId, Scope};

impl Store {
    /// Writes an opt-out down, and says whether it is new, and what stands there now.
    pub(super) async fn opt_out(
        &self,
        account: &AccountId,
        opt_out: OptOut,
    ) -> ApiResult<(bool, Option<Suppression>)> {
        let (recipient, scope) = (opt_out.recipient.clone(), opt_out.scope);
        let (is_new, all) = match self {
            Self::Memory(records) => {
                let is_new = records.add_opt_out(account, opt_out);
                (is_new, records.opt_outs_of(account, &recipient))
            }
            Self::Postgres(database) => {
                change(database, async |connection| {
                    let added = table::add(connection, account, &[opt_out]).await?;
                    let all = table::of_recipient(connection, account, &recipient).await?;
                    Ok((added > 0, all))
                })
                .await?
            }
        };
        let mut all = all.into_iter();
        Ok((is_new, all.find(|one| one.scope == scope.as_str())))
    }

    /// Removes a recipient's opt-outs of these scopes, or without any of all, and says how many there
    /// were.
    pub(super) async fn opt_in(
        &self,
        account: &AccountId,
        recipient: &str,
        scopes: &[Scope],
    ) -> ApiResult<u64> {
        let all = [None];
        let some: Vec<_> = scopes.iter().copied().map(Some).collect();
        let scopes = if scopes.is_empty() { &all[..] } else { &some };
        let database = match self {
            Self::Memory(records) => {
                let removed = scopes.iter();
                let removed =
                    removed.map(|scope| records.remove_opt_outs(account, recipient, *scope));
                return Ok(removed.sum());
            }
            Self::Postgres(database) => database,
        };
        let recipients = [recipient.to_owned()];
        change(database, async |connection| {
            let mut removed = 0;
            for scope in scopes {
                removed += table::remove(connection, account, &recipients, *scope).await?;
            }
            Ok(removed)
        })
        .await
    }

    /// A recipient's opt-outs.
    pub(super) async fn opt_outs_of(
        &self,
        account: &AccountId,
        recipient: &str,
    ) -> ApiResult<Vec<Suppression>> {
        match self {
            Self::Memory(records) => Ok(records.opt_outs_of(account, recipient)),
            Self::Postgres(database) => {
                ask(database, async |connection| {
                    table::of_recipient(connection, account, recipient).await
                })
                .await
            }
        }
    }

    /// At most `count` opt-outs, in the order of recipients and scopes, behind a recipient and scope; and
    /// the cursor of the next page, if this was not the last.
    pub(super) async fn opt_outs(
        &self,
        account: &AccountId,
        scope: Option<Scope>,
        after: Option<(&str, &str)>,
        count: u16,
    ) -> ApiResult<(Vec<Suppression>, Option<String>)> {
        let last = |last: &Suppression| cursor(&[&last.recipient, &last.scope]);
        let database = match self {
            Self::Memory(records) => {
                let found = records.opt_out_page(account, scope, after, count + 1);
                return Ok(cut(found, count, last));
            }
            Self::Postgres(database) => database,
        };
        let Some(scope) = scope else {
            let found = ask(database, async |connection| {
                table::page(connection, account, None, after, count + 1).await
            });
            return Ok(cut(found.await?, count, last));
        };
        let page = glance(database, async |connection| {
            table::scope_page(connection, account, scope, after, count).await
        });
        let table::ScopePage { found, next } = page.await?;
        let next = next.map(|(recipient, scope)| cursor(&[&recipient, &scope]));
        Ok((found, next))
    }
}
