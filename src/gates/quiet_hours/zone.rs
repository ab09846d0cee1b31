//! Names of time zones.

use jiff::tz::TimeZone;
use thiserror::Error;

/// A text is no name of a time zone. It does not hold the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("expected an IANA time zone, such as Europe/London")]
pub struct ZoneError;

/// The time zone of an IANA name, aliases included (`Asia/Katmandu`, `utc`, `EST5EDT`); capitals
/// make no difference.
///
/// # Errors
/// [`ZoneError`], for any other text, and for the names that the IANA data have for "no zone known"
/// (`Etc/Unknown`, `Factory`): they would mean UTC, silently.
pub fn parse_zone(name: &str) -> Result<TimeZone, ZoneError> {
    if name.eq_ignore_ascii_case("Factory") {
        return Err(ZoneError);
    }
    let zone = TimeZone::get(name).map_err(|_| ZoneError)?;
    if zone.is_unknown() {
        return Err(ZoneError);
    }
    Ok(zone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_stand_for_no_known_zone_are_refused() {
        let names = [
            "",
            " ",
            "Etc/Unknown",
            "etc/unknown",
            "Factory",
            "FACTORY",
            "America/Nowhere",
            "Europe",
            "Europe/London ",
            "+01:00",
            "EST5EDT,M3.2.0,M11.1.0",
            "../../etc/passwd",
            "Europe/London\0",
        ];
        for name in names {
            assert_eq!(parse_zone(name).err(), Some(ZoneError), "{name:?}");
        }
    }

    #[test]
    fn a_zone_is_called_by_its_proper_spelling() {
        let zone = parse_zone("AMERICA/NEW_YORK").unwrap();
        assert_eq!(zone.iana_name(), Some("America/New_York"));
    }
}
