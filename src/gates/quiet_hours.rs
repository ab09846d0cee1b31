//! Quiet hours: messages go out only within hours that suit their recipient's wall clock.
//!
//! A [`SendWindow`] says when sending is allowed; quiet hours are the rest of the day. The zones of
//! a recipient ([`zones_of_recipient`]) are the one that its job names, else those of its number,
//! else the account's. Where there are several, all of them must allow.
//!
//! [`explain()`] says the same for those who ask, and which of the zones decided.
//!
//! Nothing here looks at a clock: the instant is passed in.

use jiff::{Timestamp, tz::TimeZone};

mod channel_windows;
mod explain;
mod opening;
mod recipient;
mod window;
mod zone;

#[cfg(test)]
mod field_tests;
#[cfg(test)]
mod test_support;
#[cfg(test)]
mod tests;

pub use channel_windows::ChannelWindows;
pub use explain::{Explained, explain};
pub use recipient::{ZoneSource, zones_of_recipient};
pub use window::{SendWindow, WindowError};
pub use zone::{ZoneError, parse_zone};

/// How far ahead an instant is looked for at which all zones allow. One zone has one within two
/// days, even where a change of its clock skips one; zones that do not meet within a week meet
/// again when clocks change, if ever, which is too late for any message.
const HORIZON_DAYS: i64 = 8;

/// Sending is not allowed now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocked {
    /// The first instant from now on at which every zone allows; `None`: there is none within
    /// eight days, because in these zones it is never daytime at once.
    pub next_allowed_at: Option<Timestamp>,
}

/// Whether sending is allowed now in all of these zones. Without any zone it is.
///
/// # Errors
/// [`Blocked`], with the instant from which it will be allowed.
pub fn check(window: SendWindow, zones: &[TimeZone], now: Timestamp) -> Result<(), Blocked> {
    if closed_zone(window, zones, now).is_none() {
        return Ok(());
    }
    Err(Blocked {
        next_allowed_at: explain::last_to_open(window, zones, now).map(|(_, at)| at),
    })
}

/// A zone that does not allow at that instant, if there is one.
fn closed_zone(window: SendWindow, zones: &[TimeZone], at: Timestamp) -> Option<&TimeZone> {
    zones
        .iter()
        .find(|zone| !opening::is_open(window, zone, at))
}
