//! Opt-outs as clients see and write them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::scope::ScopeName;
use crate::accounts::tables::suppressions::Suppression;

/// An opt-out.
#[derive(Debug, Serialize, ToSchema)]
pub struct SuppressionView {
    /// The recipient, in the one form in which recipients are compared.
    #[schema(example = "+447700900123")]
    pub recipient: String,
    /// What it concerns: `all`, or a channel.
    #[schema(example = "all")]
    pub channel: String,
    /// Where it came from, for people.
    pub source: Option<String>,
    /// Since when it is written down.
    #[schema(format = DateTime)]
    pub since: String,
}

impl From<Suppression> for SuppressionView {
    fn from(one: Suppression) -> Self {
        Self {
            recipient: one.recipient,
            channel: one.scope,
            source: one.source,
            since: format!("{:.3}", one.since),
        }
    }
}

/// An opt-out to be written down.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSuppression {
    /// A telephone number, an e-mail address, or an id of the channel.
    #[schema(example = "+447700900123", max_length = 1024)]
    pub(super) recipient: String,
    /// What it concerns. Where it is absent: every channel for a telephone number, and e-mail for an
    /// e-mail address.
    #[schema(value_type = Option<ScopeName>)]
    pub(super) channel: Option<String>,
    /// Where it came from, for people.
    #[schema(min_length = 1, max_length = 1024)]
    pub(super) source: Option<String>,
}

/// What was removed.
#[derive(Debug, Serialize, ToSchema)]
pub struct RemovedView {
    /// The recipient, in the one form in which recipients are compared.
    pub recipient: String,
    /// Opt-outs that are no more.
    pub removed: u64,
}
