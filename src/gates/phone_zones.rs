//! The time zones that a telephone number may belong to.
//!
//! The facts are libphonenumber's: a table from prefixes to zones (`phone_zones/zones.txt`, whose
//! head says where it comes from and how to renew it), and the kind of a number, which decides how
//! much of it is looked up. The answers are those of `time_zones_for_number` in libphonenumber.

use jiff::tz::TimeZone;
use rlibphonenumber::{PHONE_NUMBER_UTIL, PhoneNumber, PhoneNumberType};

mod table;

use table::TABLE;

/// The zones of a number in E.164 form. None where it is no valid number, or nothing is known of it.
///
/// A number whose prefix belongs to a place has that place's zones; any other (toll-free, or mobile
/// where mobile prefixes say nothing) has all zones of its country calling code.
#[must_use]
pub fn of(number: &str) -> &'static [TimeZone] {
    let Some(digits) = digits_of(number) else {
        return &[];
    };
    let Ok(parsed) = PHONE_NUMBER_UTIL.parse(number, None) else {
        return &[];
    };
    match PHONE_NUMBER_UTIL.get_number_type(&parsed) {
        PhoneNumberType::Unknown => &[],
        kind if tells_a_place(&parsed, kind) => TABLE.of_longest_prefix(digits),
        _ => TABLE.of_longest_prefix(&parsed.country_code.to_string()),
    }
}

fn digits_of(number: &str) -> Option<&str> {
    let digits = number.strip_prefix('+')?;
    let all_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    all_digits.then_some(digits)
}

fn tells_a_place(number: &PhoneNumber, kind: PhoneNumberType) -> bool {
    PHONE_NUMBER_UTIL.is_number_geographical_by_country_code_and_type(kind, number.country_code)
}
