//! Lists, some entries at a time.

use super::error::{ApiError, ApiResult};
use crate::digest::hex;

/// Entries of a page where nobody says how many.
const USUAL: u16 = 50;

/// The most entries of a page.
const MOST: u16 = 200;

/// The longest cursor that is read, in bytes: the longest recipient, scope and separator, twice.
const LONGEST_CURSOR: usize = 4_096;

/// What stands between the parts of a cursor. None of them holds a control character.
const SEPARATOR: &str = "\n";

/// How many entries a page may have.
pub(super) fn limit(given: Option<u16>) -> ApiResult<u16> {
    limit_to(given, USUAL, MOST)
}

/// How many entries a page of small ones may have: `usual` where nobody says, and `most` at most.
pub(super) fn limit_to(given: Option<u16>, usual: u16, most: u16) -> ApiResult<u16> {
    let limit = given.unwrap_or(usual);
    if (1..=most).contains(&limit) {
        return Ok(limit);
    }
    let expected = format!("expected 1 to {most}");
    Err(ApiError::validation("limit", Some(limit.into()), expected))
}

/// A cursor of these parts. Clients give it back as it is.
pub(super) fn cursor(parts: &[&str]) -> String {
    hex(parts.join(SEPARATOR).as_bytes())
}

/// The parts of a cursor that was given back; `None` where none was given.
pub(super) fn parts<const N: usize>(cursor: Option<&str>) -> ApiResult<Option<[String; N]>> {
    let Some(cursor) = cursor else {
        return Ok(None);
    };
    let parts = unhex(cursor).and_then(|text| {
        let parts: Vec<_> = text.split(SEPARATOR).map(str::to_owned).collect();
        parts.try_into().ok()
    });
    parts.map(Some).ok_or_else(wrong_cursor)
}

/// What was given is no cursor of this list.
pub(super) fn wrong_cursor() -> ApiError {
    ApiError::validation(
        "cursor",
        None,
        "expected meta.next_cursor of an earlier page",
    )
}

fn unhex(text: &str) -> Option<String> {
    if text.is_empty() || text.len() > LONGEST_CURSOR || !text.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = text.as_bytes().chunks_exact(2);
    let bytes = pairs.map(|pair| u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok());
    let text = String::from_utf8(bytes.collect::<Option<_>>()?).ok()?;
    // PostgreSQL takes no NUL.
    (!text.contains('\0')).then_some(text)
}

/// One page of what was found, where one entry more than `limit` was asked for, and where the next
/// one begins, if there is one.
pub(super) fn cut<T>(
    mut found: Vec<T>,
    limit: u16,
    cursor_of: impl FnOnce(&T) -> String,
) -> (Vec<T>, Option<String>) {
    let limit = usize::from(limit);
    if found.len() <= limit {
        return (found, None);
    }
    found.truncate(limit);
    let next = found.last().map(cursor_of);
    (found, next)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_cursor_is_refused() {
        for wrong in [
            "",
            "x",
            "6",
            "zz",
            "61",
            "ff0a61",
            "610a620a63",
            "61000a61",
            "é0",
        ] {
            assert!(parts::<2>(Some(wrong)).is_err(), "{wrong}");
        }
        assert_eq!(parts::<2>(None).unwrap(), None);
        assert!(parts::<2>(Some(&"61".repeat(3_000))).is_err());
    }

    #[test]
    fn pages_have_a_size() {
        assert_eq!(limit(None).unwrap(), 50);
        assert_eq!(limit(Some(200)).unwrap(), 200);
        assert!(limit(Some(0)).is_err() && limit(Some(201)).is_err());
    }

    #[test]
    fn the_last_page_says_that_it_is_the_last() {
        let name = |one: &&str| (*one).to_owned();
        assert_eq!(cut(vec!["a", "b"], 2, name), (vec!["a", "b"], None));
        let more = cut(vec!["a", "b", "c"], 2, name);
        assert_eq!(more, (vec!["a", "b"], Some("b".to_owned())));
    }

    proptest! {
        #[test]
        fn a_cursor_comes_back_as_it_was(one in "[^\n\0]{0,40}", other in "[^\n\0]{0,40}") {
            let given = cursor(&[&one, &other]);
            prop_assert_eq!(parts::<2>(Some(&given)).unwrap(), Some([one, other]));
        }
    }
}
