//! Holds where they are kept.

use crate::accounts::HoldKind;
use crate::accounts::keys::KeyId;
use crate::accounts::tables::holds::{self as table, HoldRecord, HoldTarget, Lifted};
use crate::api::ask::{ask, change};
use crate::api::error::ApiResult;
use crate::api::store::Store;
use crate::dispatch::ports::Hold;
use crate::domain::AccountId;

impl Store {
    /// Pauses or cancels something, and gives the hold that it had before, and what stands there now.
    pub(super) async fn put_hold(
        &self,
        on: &HoldTarget,
        hold: Hold,
        reason: Option<&str>,
        by: KeyId,
    ) -> ApiResult<(Option<Hold>, Option<HoldRecord>)> {
        match self {
            Self::Memory(records) => {
                let before = records.put_hold(on, hold, reason, Some(by));
                Ok((before, records.find_hold(on)))
            }
            Self::Postgres(database) => {
                change(database, async |connection| {
                    let before = table::put(connection, on, hold, reason, Some(by)).await?;
                    Ok((before, table::find(connection, on).await?))
                })
                .await
            }
        }
    }

    /// Lifts a hold that is no graver than `gravest` and that no operator made.
    pub(super) async fn lift_hold(
        &self,
        on: &HoldTarget,
        gravest: Hold,
        by: KeyId,
    ) -> ApiResult<Lifted> {
        match self {
            Self::Memory(records) => Ok(records.lift_hold(on, gravest, Some(by))),
            Self::Postgres(database) => {
                change(database, async |connection| {
                    table::lift(connection, on, gravest, Some(by)).await
                })
                .await
            }
        }
    }

    /// At most `count` holds, in the order of kinds and ids, behind a kind and id.
    pub(super) async fn holds(
        &self,
        account: &AccountId,
        after: Option<(HoldKind, &str)>,
        count: u16,
    ) -> ApiResult<Vec<HoldRecord>> {
        match self {
            Self::Memory(records) => Ok(records.hold_page(account, after, count)),
            Self::Postgres(database) => {
                ask(database, async |connection| {
                    table::page(connection, account, after, count).await
                })
                .await
            }
        }
    }
}
