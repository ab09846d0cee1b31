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
