//! What quiet hours say, and which zone decided.

use jiff::{Timestamp, ToSpan, tz::TimeZone};

use super::{HORIZON_DAYS, SendWindow, closed_zone, opening};

/// What quiet hours say at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Explained<'z> {
    /// Whether every zone allows.
    pub allowed: bool,
    /// The zone that decides. While sending is allowed, the one whose window closes first; while it
    /// is not, the one that opens last; where they never allow at once, the first that is closed
    /// now. `None` only where there is no zone.
    pub zone: Option<&'z TimeZone>,
    /// While sending is not allowed: the first instant at which every zone allows, if there is one
    /// within eight days.
    pub next_allowed_at: Option<Timestamp>,
}

/// The same answer as [`super::check`] gives, with the zone that decides.
#[must_use]
pub fn explain(window: SendWindow, zones: &[TimeZone], now: Timestamp) -> Explained<'_> {
    let Some(first) = closed_zone(window, zones, now) else {
        let closes = |zone: &&TimeZone| window.until_end(zone.to_datetime(now).time());
        return Explained {
            allowed: true,
            zone: zones.iter().min_by_key(closes),
            next_allowed_at: None,
        };
    };
    let (zone, next_allowed_at) = match last_to_open(window, zones, now) {
        Some((last, at)) => (last, Some(at)),
        None => (first, None),
    };
    Explained {
        allowed: false,
        zone: Some(zone),
        next_allowed_at,
    }
}

/// The first instant from now on at which every zone allows, and the zone that opened then. `None`
/// where every zone allows now.
///
/// Goes from instant to instant at which a zone that is still closed may open. No allowed instant is
/// stepped over, because each step passes only time in which one zone is closed.
pub(super) fn last_to_open(
    window: SendWindow,
    zones: &[TimeZone],
    now: Timestamp,
) -> Option<(&TimeZone, Timestamp)> {
    let horizon = now.checked_add((24 * HORIZON_DAYS).hours()).ok()?;
    let (mut at, mut waited_for) = (now, None);
    while at <= horizon {
        let Some(closed) = closed_zone(window, zones, at) else {
            return Some((waited_for?, at));
        };
        waited_for = Some(closed);
        at = opening::may_open_at(window, closed, at)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::super::test_support::{at, window, zones};
    use super::*;

    fn of(names: &[&str], now: &str) -> (bool, Option<String>, Option<Timestamp>) {
        let zones = zones(names);
        let day = window("08:00-21:00");
        let explained = explain(day, &zones, at(now));
        let blocked = check(day, &zones, at(now)).err();
        assert_eq!(explained.allowed, blocked.is_none());
        let next = blocked.and_then(|blocked| blocked.next_allowed_at);
        assert_eq!(explained.next_allowed_at, next);
        let name = explained.zone.and_then(TimeZone::iana_name);
        (explained.allowed, name.map(str::to_owned), next)
    }

    #[test]
    fn the_zone_that_opens_last_decides_while_it_is_closed() {
        let both = ["America/New_York", "America/Los_Angeles"];
        // Ten in New York, seven in Los Angeles.
        let (allowed, zone, next) = of(&both, "2026-07-01T14:00:00Z");
        assert!(!allowed);
        assert_eq!(zone.as_deref(), Some("America/Los_Angeles"));
        assert_eq!(next, Some(at("2026-07-01T15:00:00Z")));
        // Late evening in New York: tomorrow, when Los Angeles has opened too.
        let (_, zone, next) = of(&both, "2026-07-02T01:30:00Z");
        assert_eq!(zone.as_deref(), Some("America/Los_Angeles"));
        assert_eq!(next, Some(at("2026-07-02T15:00:00Z")));
    }

    #[test]
    fn the_zone_that_closes_first_decides_while_it_is_open() {
        let both = ["America/Los_Angeles", "America/New_York"];
        let (allowed, zone, next) = of(&both, "2026-07-01T16:00:00Z");
        assert!(allowed);
        assert_eq!(zone.as_deref(), Some("America/New_York"));
        assert_eq!(next, None);
    }

    #[test]
    fn zones_that_never_allow_at_once_have_no_next_instant() {
        let apart = ["Pacific/Auckland", "Atlantic/Azores"];
        let narrow = window("08:00-09:00");
        let zones = zones(&apart);
        let explained = explain(narrow, &zones, at("2026-07-01T12:00:00Z"));
        assert!(!explained.allowed);
        assert_eq!(explained.next_allowed_at, None);
        let zone = explained.zone.and_then(TimeZone::iana_name);
        assert_eq!(zone, Some("Pacific/Auckland"));
    }

    #[test]
    fn without_a_zone_everything_is_allowed() {
        let explained = explain(window("08:00-21:00"), &[], Timestamp::UNIX_EPOCH);
        assert_eq!((explained.allowed, explained.zone), (true, None));
    }
}
