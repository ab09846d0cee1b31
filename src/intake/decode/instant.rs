//! Instants as publishers write them.

use std::borrow::Cow;

use jiff::Timestamp;
use jiff::fmt::temporal::Pieces;

/// The finest fraction of a second that can be computed with, in digits.
const DIGITS: usize = 9;

/// Reads an RFC 3339 instant. Finer fractions than nanoseconds are cut; the last hours of the year
/// 9999, by which publishers say "never", are taken for the last instant that can be computed with.
///
/// Years have four digits. Parsed as they are, texts may have years of six digits with a sign, down
/// to 9999 BC; PostgreSQL knows none before 4713 BC, and one such instant would fail every statement
/// that it is in.
pub(super) fn read_instant(text: &str) -> Option<Timestamp> {
    let text = without_long_fraction(text);
    if text.starts_with(['-', '+']) || has_wild_offset(&text) {
        return None;
    }
    text.parse().ok().or_else(|| never(&text))
}

fn without_long_fraction(text: &str) -> Cow<'_, str> {
    let Some((whole, rest)) = text.split_once('.') else {
        return Cow::Borrowed(text);
    };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    if digits <= DIGITS {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{whole}.{}{}", &rest[..DIGITS], &rest[digits..]))
}

/// An offset of a day or more: no clock on Earth shows it.
fn has_wild_offset(text: &str) -> bool {
    let behind_date = text.get(10..).unwrap_or_default();
    let hours = behind_date
        .rsplit_once(['+', '-'])
        .and_then(|(_, offset)| offset.get(..2)?.parse::<u8>().ok());
    hours.is_some_and(|hours| hours > 23)
}

fn never(text: &str) -> Option<Timestamp> {
    let pieces = Pieces::parse(text).ok()?;
    let is_instant = pieces.time().is_some()
        && pieces.offset().is_some()
        && pieces.time_zone_annotation().is_none();
    (is_instant && pieces.date().year() == 9_999).then_some(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rfc_3339_allows_is_read() {
        for (text, read) in [
            ("2026-01-31T09:00:00Z", "2026-01-31T09:00:00Z"),
            ("2026-01-31t09:00:00z", "2026-01-31T09:00:00Z"),
            ("2026-01-31T09:00:00+23:59", "2026-01-30T09:01:00Z"),
            ("2026-01-31T09:00:00-23:59", "2026-02-01T08:59:00Z"),
            (
                "2026-01-31T09:00:00.1234567899999Z",
                "2026-01-31T09:00:00.123456789Z",
            ),
            (
                "2026-01-31T10:00:00.0000000000001+01:00",
                "2026-01-31T09:00:00Z",
            ),
        ] {
            assert_eq!(read_instant(text), read.parse().ok(), "{text}");
            assert!(read_instant(text).is_some(), "{text}");
        }
    }

    #[test]
    fn the_end_of_the_year_9999_is_the_last_instant() {
        for text in [
            "9999-12-31T23:59:59Z",
            "9999-12-31T23:59:59.999Z",
            "9999-12-31T23:59:59-08:00",
        ] {
            assert_eq!(read_instant(text), Some(Timestamp::MAX), "{text}");
        }
    }

    #[test]
    fn what_is_no_instant_is_refused() {
        for text in [
            "",
            "9999-12-31",
            "9999-12-31T23:59:59",
            "9999-12-31T25:00:00Z",
            "2026-01-31T09:00:00+24:00",
            "2026-01-31T09:00:00+25:00",
            "2026-01-31T09:00:00-25:00",
            "2026-01-31T09:00:00.Z",
            "2026-13-31T09:00:00Z",
        ] {
            assert_eq!(read_instant(text), None, "{text}");
        }
    }
}
