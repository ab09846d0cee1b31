//! Texts that clients give and that are written down as they are.

use super::error::{ApiError, ApiResult};

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
