//! One line in the log for each change that an API key makes.

use std::fmt::Display;

use super::auth::Caller;

/// Notes who has changed what. `on` names a thing of the account's: never a recipient, a body or a
/// secret.
pub(super) fn audit(caller: &Caller, action: &'static str, on: impl Display) {
    let (key, account) = (caller.key, &caller.account);
    tracing::info!(%key, %account, action, %on, "changed by an API key");
}
