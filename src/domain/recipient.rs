//! Recipients in the form in which gates compare them.

use std::borrow::Cow;
use std::sync::Arc;

use super::{AccountId, Channel};

/// The form in which opt-outs and caps know a recipient.
#[must_use]
pub fn recipient_key(channel: Channel, to: &str) -> Cow<'_, str> {
    if channel == Channel::Email {
        return Cow::Owned(to.trim().to_lowercase());
    }
    Cow::Borrowed(to.trim())
}

/// A digest of a recipient.
#[must_use]
pub fn recipient_digest(account: &AccountId, key: &str) -> Arc<str> {
    crate::digest::Digest::of(format!("{account}\0{key}").as_bytes())
        .to_string()
        .into()
}
