//! Holds as clients see and write them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::accounts::tables::holds::{HoldRecord, HoldTarget};
use crate::accounts::{HoldKind, hold_name};
use crate::api::error::{ApiError, ApiResult};
use crate::api::texts::text;
use crate::dispatch::ports::Hold;
use crate::domain::AccountId;

/// Something that is paused or cancelled.
#[derive(Debug, Serialize, ToSchema)]
pub struct HoldView {
    /// What it is.
    #[schema(value_type = HoldKindName)]
    pub kind: &'static str,
    /// Its id.
    #[schema(example = "spring")]
    pub id: String,
    /// `paused`: its messages wait. `cancelled`: they end.
    #[schema(value_type = HoldState)]
    pub state: &'static str,
    /// Why, for people.
    pub reason: Option<String>,
    /// Since when.
    #[schema(format = DateTime)]
    pub since: String,
    /// Who made it. What an operator has made no key can lift.
    #[schema(value_type = HoldMaker)]
    pub by: &'static str,
    /// The id of the key that made it.
    pub key_id: Option<String>,
}

impl From<HoldRecord> for HoldView {
    fn from(record: HoldRecord) -> Self {
        let by = if record.by_key.is_some() {
            "key"
        } else {
            "operator"
        };
        Self {
            kind: record.on.kind.as_str(),
            id: record.on.target,
            state: hold_name(record.hold),
            reason: record.reason,
            since: format!("{:.3}", record.since),
            by,
            key_id: record.by_key,
        }
    }
}

/// What can be held.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum HoldKindName {
    /// The account, with all that it sends.
    Account,
    /// A campaign.
    Campaign,
    /// A journey.
    Journey,
    /// A batch.
    Batch,
}

impl From<HoldKindName> for HoldKind {
    fn from(name: HoldKindName) -> Self {
        match name {
            HoldKindName::Account => Self::Account,
            HoldKindName::Campaign => Self::Campaign,
            HoldKindName::Journey => Self::Journey,
            HoldKindName::Batch => Self::Batch,
        }
    }
}

/// What is to be done.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum HoldAction {
    /// Its messages wait until it is resumed.
    Pause,
    /// Its messages end as cancelled.
    Cancel,
}

impl From<HoldAction> for Hold {
    fn from(action: HoldAction) -> Self {
        match action {
            HoldAction::Pause => Self::Paused,
            HoldAction::Cancel => Self::Cancelled,
        }
    }
}

/// How something is held.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(dead_code, reason = "it describes")]
pub(super) enum HoldState {
    Paused,
    Cancelled,
}

/// Who made a hold.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(dead_code, reason = "it describes")]
enum HoldMaker {
    Operator,
    Key,
}

/// A hold to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewHold {
    /// What to hold.
    kind: HoldKindName,
    /// The campaign's, journey's or batch's id, as messages have it. The account itself may be left
    /// out.
    #[schema(min_length = 1, max_length = 1024, example = "spring")]
    id: Option<String>,
    /// What to do.
    action: HoldAction,
    /// Why, for people.
    #[schema(min_length = 1, max_length = 1024)]
    reason: Option<String>,
}

impl NewHold {
    /// What it is on, what to do, and why.
    pub(super) fn read(self, account: &AccountId) -> ApiResult<(HoldTarget, Hold, Option<String>)> {
        let on = target(account, self.kind.into(), self.id.as_deref())?;
        let reason = self.reason.as_deref();
        let reason = reason.map(|reason| text("reason", reason)).transpose()?;
        let reason = reason.map(str::to_owned);
        Ok((on, self.action.into(), reason))
    }
}

/// What a hold is on: always of the caller's own account.
pub(super) fn target(
    account: &AccountId,
    kind: HoldKind,
    id: Option<&str>,
) -> ApiResult<HoldTarget> {
    let target = match (kind, id) {
        (HoldKind::Account, None) => account.as_str(),
        (HoldKind::Account, Some(id)) if id == account.as_str() => id,
        (HoldKind::Account, Some(_)) => {
            let expected = "expected the account that this key belongs to";
            return Err(ApiError::validation("id", None, expected));
        }
        (_, Some(id)) => text("id", id)?,
        (_, None) => {
            return Err(ApiError::validation("id", None, "expected an id"));
        }
    };
    Ok(HoldTarget {
        account: account.clone(),
        kind,
        target: target.to_owned(),
    })
}

/// Something that goes on.
#[derive(Debug, Serialize, ToSchema)]
pub struct ResumedView {
    /// What it is.
    #[schema(value_type = HoldKindName)]
    pub kind: &'static str,
    /// Its id.
    pub id: String,
    /// How it was held.
    #[schema(value_type = HoldState)]
    pub before: &'static str,
}
