//! Values of options, as several commands take them. Each error says what was expected.

use crate::domain::{AccountId, Channel, Origin, Priority, Region};

/// An account's id.
pub(super) fn account(text: &str) -> Result<AccountId, String> {
    AccountId::parse(text).map_err(|error| error.to_string())
}

/// A channel's name.
pub(super) fn channel(text: &str) -> Result<Channel, String> {
    let known = || Channel::ALL.map(Channel::as_str).join(", ");
    Channel::parse(text).ok_or_else(|| format!("expected one of {}", known()))
}

/// An origin's name.
pub(super) fn origin(text: &str) -> Result<Origin, String> {
    let known = || Origin::ALL.map(Origin::as_str).join(", ");
    Origin::parse(text).ok_or_else(|| format!("expected one of {}", known()))
}

/// A priority's name.
pub(super) fn priority(text: &str) -> Result<Priority, String> {
    let known = || Priority::ALL.map(Priority::as_str).join(", ");
    Priority::parse(text).ok_or_else(|| format!("expected one of {}", known()))
}

/// The code of a country, as the setting `jobs.default_region` has it.
pub(super) fn region(text: &str) -> Result<Region, String> {
    Region::parse(text).ok_or_else(|| format!("expected {}", Region::EXPECTED))
}
