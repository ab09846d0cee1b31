//! Texts that clients give.

use super::error::{ApiError, ApiResult};
use crate::domain::Channel;

/// The longest, in bytes: an index has room for it.
const LONGEST: usize = 1_024;

/// A text that jobs are compared with, or that people read later.
///
/// # Errors
/// When it is empty, too long, or holds a control character.
pub(super) fn text<'a>(field: &str, value: &'a str) -> ApiResult<&'a str> {
    if value.is_empty() || value.len() > LONGEST || value.chars().any(char::is_control) {
        let expected = format!("expected 1 to {LONGEST} bytes without control characters");
        return Err(ApiError::validation(field, None, expected));
    }
    Ok(value)
}

/// The same where it may be absent.
pub(super) fn text_if_given<'a>(field: &str, value: Option<&'a str>) -> ApiResult<Option<&'a str>> {
    value.map(|value| text(field, value)).transpose()
}

/// The channel of that name.
///
/// # Errors
/// When there is none.
pub(super) fn channel_of(name: &str) -> ApiResult<Channel> {
    Channel::parse(name).ok_or_else(|| {
        let expected = format!("expected one of {}", channel_names());
        ApiError::validation("channel", None, expected)
    })
}

/// Every channel, for those who have named none of them.
pub(super) fn channel_names() -> String {
    Channel::ALL.map(Channel::as_str).join(", ")
}
