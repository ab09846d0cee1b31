//! Telephone numbers in one spelling, so that gates and ceilings compare like with like.

use rlibphonenumber::{PHONE_NUMBER_UTIL, PhoneNumberFormat};
use thiserror::Error;

/// A country whose numbers may be written without their country code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region(rlibphonenumber::Region);

impl Region {
    /// What a code is expected to be.
    pub const EXPECTED: &str = "an ISO 3166-1 code of two capitals, such as GB";

    /// Reads an ISO 3166-1 code of two capital letters, such as `GB`.
    #[must_use]
    pub fn parse(code: &str) -> Option<Self> {
        let two_capitals = code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_uppercase());
        let region = two_capitals.then(|| code.parse().ok()).flatten()?;
        PHONE_NUMBER_UTIL
            .get_supported_regions()
            .any(|known| known == region)
            .then_some(Self(region))
    }
}

/// Why a text is not a telephone number that can be written to. It never holds the text: error
/// texts reach logs, and recipients must not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PhoneError {
    /// There is something other than digits and the usual separators.
    #[error("expected a telephone number of digits, such as +447700900123")]
    Characters,
    /// No `+` and country code, and no default region to take them from.
    #[error("expected a + and a country code, such as +447700900123")]
    CountryCode,
    /// The numbering plan of its country has no numbers of that length.
    #[error("expected a number as long as its country's numbers are")]
    Length,
    /// It ends in an extension, which no carrier can write to.
    #[error("expected a number without an extension")]
    Extension,
}

/// The number in E.164 form: `+`, country code and subscriber, nothing else.
///
/// Lengths are checked against the country's numbering plan; whether a number range has been
/// allotted is not, because new ranges appear faster than programs are updated.
///
/// # Errors
/// [`PhoneError`], when it cannot be a number.
pub fn normalise_number(text: &str, default_region: Option<Region>) -> Result<String, PhoneError> {
    let text = text.trim();
    if text.is_empty() || !text.chars().all(is_number_character) || has_decimal_end(text) {
        return Err(PhoneError::Characters);
    }
    let number = PHONE_NUMBER_UTIL
        .parse(text, default_region.map(|region| region.0))
        .map_err(|_| {
            if text.starts_with('+') {
                PhoneError::Length
            } else {
                PhoneError::CountryCode
            }
        })?;
    if number.extension.is_some() {
        return Err(PhoneError::Extension);
    }
    if !PHONE_NUMBER_UTIL.is_possible_number(&number) {
        return Err(PhoneError::Length);
    }
    Ok(PHONE_NUMBER_UTIL
        .format(&number, PhoneNumberFormat::E164)
        .into_owned())
}

/// The sender in one spelling: an international number in E.164 form; anything else (a sender
/// name, a short code, an address) as it is.
#[must_use]
pub fn normalise_sender(text: &str) -> String {
    let number = text
        .trim()
        .starts_with('+')
        .then(|| normalise_number(text, None).ok())
        .flatten();
    number.unwrap_or_else(|| text.to_owned())
}

/// Letters are refused, although some write numbers with them: `4.47E+11` is what a spreadsheet
/// makes of a number whose digits are lost.
fn is_number_character(c: char) -> bool {
    c.is_ascii_digit() || matches!(c, '+' | ' ' | '-' | '(' | ')' | '.' | '/' | '\u{a0}')
}

/// `447700900123.0`: a number that a spreadsheet took for a decimal; reading it as one more digit
/// would write to somebody else.
fn has_decimal_end(text: &str) -> bool {
    text.rsplit_once('.').is_some_and(|(_, end)| end.len() < 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn e164(text: &str) -> Result<String, PhoneError> {
        normalise_number(text, None)
    }

    #[test]
    fn spellings_of_one_number_become_one() {
        for text in [
            "+447700900123",
            "+44 7700 900123",
            " +44 (7700) 900-123",
            "+44.7700.900123",
            "+44 (0)7700 900123",
        ] {
            assert_eq!(e164(text).as_deref(), Ok("+447700900123"), "{text}");
        }
    }

    #[test]
    fn a_missing_country_code_needs_a_region() {
        let britain = Region::parse("GB");
        assert!(britain.is_some());
        assert_eq!(
            normalise_number("07700 900123", britain).as_deref(),
            Ok("+447700900123")
        );
        assert_eq!(
            normalise_number("00447700900123", britain).as_deref(),
            Ok("+447700900123")
        );
        assert_eq!(e164("07700900123"), Err(PhoneError::CountryCode));
        assert_eq!(e164("447700900123"), Err(PhoneError::CountryCode));
    }

    #[test]
    fn what_is_not_a_number_is_refused() {
        for text in [
            "",
            " ",
            "abc",
            "4.479E+11",
            "447700900123.0",
            "=\"447\"",
            "+44\u{0}7700900123",
            "tel:+447700900123",
            "1-800-FLOWERS",
            "+٤٤٧٧٠٠٩٠٠١٢٣",
        ] {
            assert_eq!(e164(text), Err(PhoneError::Characters), "{text:?}");
        }
        for text in ["+1", "+44123", "+4477009001234567890", "+999123456789"] {
            assert_eq!(e164(text), Err(PhoneError::Length), "{text:?}");
        }
    }

    #[test]
    fn senders_that_are_no_international_numbers_stay_as_they_are() {
        assert_eq!(normalise_sender("+44 7700 900123"), "+447700900123");
        for text in ["SPAMMING CORP", "12345", "07700 900123", " Acme ", "+Acme"] {
            assert_eq!(normalise_sender(text), text);
        }
    }

    #[test]
    fn regions_are_known_countries() {
        assert!(Region::parse("US").is_some());
        for bad in ["", "us", "USA", "ZZ", "U1"] {
            assert!(Region::parse(bad).is_none(), "{bad}");
        }
    }
}
