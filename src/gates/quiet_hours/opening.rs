//! One window in one zone: whether it is open, and when it may open.

use jiff::{Timestamp, tz::TimeZone};

use super::SendWindow;

/// Whether the zone's wall clock is within the window at that instant.
pub(super) fn is_open(window: SendWindow, zone: &TimeZone, at: Timestamp) -> bool {
    window.allows(zone.to_datetime(at).time())
}

/// The next instant at which the window may open, where it is closed at `closed`. Up to then it stays
/// closed. `None` only at the end of time.
///
/// Between two changes of a zone's clock the clock runs evenly, so that the start of the window is
/// found by adding. A change before that comes first: by its jump, onwards or back, the clock may
/// get into the window, or nearer to its start, or further from it.
pub(super) fn may_open_at(
    window: SendWindow,
    zone: &TimeZone,
    closed: Timestamp,
) -> Option<Timestamp> {
    let ahead = window.until_start(zone.to_datetime(closed).time());
    let start = closed.checked_add(ahead).ok()?;
    let change = zone.following(closed).next();
    Some(change.map_or(start, |change| change.timestamp().min(start)))
}
