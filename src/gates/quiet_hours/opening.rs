//! One window in one zone: whether it is open, and when it opens.

use jiff::{Timestamp, tz::TimeZone};

use super::SendWindow;

/// Whether the zone's wall clock is within the window at that instant.
pub(super) fn is_open(window: SendWindow, zone: &TimeZone, at: Timestamp) -> bool {
    window.allows(zone.to_datetime(at).time())
}

/// The first instant after `closed` at which the zone's wall clock is within the window; `closed`
/// is an instant at which it is not. `None` only at the end of time.
///
/// Between two transitions of a zone its clock runs evenly, so that the start of the window is
/// found by adding. A transition before that may open the window by a jump of the clock, onwards
/// or back, or move its start.
pub(super) fn next_opening(
    window: SendWindow,
    zone: &TimeZone,
    closed: Timestamp,
) -> Option<Timestamp> {
    let mut from = closed;
    loop {
        let start = from
            .checked_add(window.until_start(zone.to_datetime(from).time()))
            .ok()?;
        let transition = zone.following(from).next().map(|next| next.timestamp());
        match transition {
            Some(transition) if transition <= start => from = transition,
            _ => return Some(start),
        }
        if is_open(window, zone, from) {
            return Some(from);
        }
    }
}
