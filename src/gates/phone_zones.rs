//! The time zones that a telephone number may belong to.
//!
//! The facts are libphonenumber's, and the answers those of its `time_zones_for_number`. They are
//! kept in two data files, whose heads say where they come from and how to renew them: the zones of
//! prefixes (`phone_zones/zones.txt`), and the numbering plans (`phone_zones/plans.txt`), which say
//! of which numbers a prefix tells more than the country.
//!
//! The crate that numbers are parsed with knows the plans too, but as regular expressions: once all
//! countries had been met, those took 120 MB of memory in one thread and 600 MB in eight, and for
//! each number twenty times as long.

use jiff::tz::TimeZone;

mod plans;
mod prefixes;

use plans::{Located, PLANS};
use prefixes::PREFIXES;

/// The zones of a number in E.164 form. None where it is no valid number, or nothing is known of it.
///
/// A number whose prefix belongs to a place has that place's zones; any other (toll-free, or mobile
/// where mobile prefixes say nothing) has all zones of its country calling code.
#[must_use]
pub fn of(number: &str) -> &'static [TimeZone] {
    let digits = number.strip_prefix('+').unwrap_or_default();
    match PLANS.located(digits) {
        None => &[],
        Some(Located::ByCountry) => PREFIXES.shortest(digits),
        Some(Located::ByPrefix) => PREFIXES.longest(digits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(number: &str) -> Vec<&'static str> {
        let zones = of(number).iter();
        zones.map(|zone| zone.iana_name().unwrap()).collect()
    }

    #[test]
    fn a_fixed_line_is_where_its_prefix_says() {
        assert_eq!(names("+12125550123"), ["America/New_York"]);
        assert_eq!(names("+16025550123"), ["America/Phoenix"]);
        assert_eq!(names("+18085550123"), ["Pacific/Honolulu"]);
        assert_eq!(names("+442071838750"), ["Europe/London"]);
        assert_eq!(names("+390612345678"), ["Europe/Rome"]);
        assert_eq!(names("+61236618300"), ["Australia/Sydney"]);
    }

    #[test]
    fn a_prefix_on_a_border_has_the_zones_of_both_sides() {
        assert_eq!(names("+19075550123"), ["America/Adak", "America/Anchorage"]);
    }

    /// Wherever in the country, or in one of its territories, whoever answers may be.
    #[test]
    fn a_toll_free_number_has_all_zones_of_its_country_calling_code() {
        let toll_free = names("+18005550123");
        assert!(toll_free.len() > 30, "{toll_free:?}");
        for zone in ["America/New_York", "Pacific/Honolulu", "America/St_Johns"] {
            assert!(toll_free.contains(&zone), "{zone}");
        }
        assert_eq!(names("+448001111111").len(), 4);
    }

    #[test]
    fn numbers_that_belong_nowhere_have_no_zone() {
        // Of no country; valid, yet of the whole world; of no range that has been allotted.
        for number in ["+999123456789", "+80012345678", "+12120550123"] {
            assert!(names(number).is_empty(), "{number}");
        }
    }

    #[test]
    fn texts_that_are_no_number_in_e164_form_have_no_zone() {
        let texts = [
            "",
            "+",
            "+1",
            "12125550123",
            "+1 212 555 0123",
            "+1212555012",
            "+121255501234",
            "+1212555012a",
            "\u{ff0b}12125550123",
            "+\u{664}\u{664}2071838750",
            "someone@example.org",
        ];
        for text in texts {
            assert!(names(text).is_empty(), "{text}");
        }
    }
}
