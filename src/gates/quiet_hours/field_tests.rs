//! Faults that programs of this kind have had in the field, each told above the test that holds it.

use std::slice;

use super::test_support::{at, local, opens_at, window, zone};
use super::{SendWindow, check, parse_zone, zones_of_recipient};

/// Quiet hours that span midnight stopped working after 00:00.
#[test]
fn quiet_hours_over_midnight_hold_on_both_sides_of_it() {
    let (awake, berlin) = (window("07:00-21:00"), zone("Europe/Berlin"));
    let asked = |wall_clock: &str| opens_at(awake, &berlin, wall_clock);
    assert_eq!(asked("2026-06-10T20:59"), None);
    for blocked in ["2026-06-10T21:00", "2026-06-10T23:59"] {
        assert_eq!(
            asked(blocked).as_deref(),
            Some("2026-06-11T07:00"),
            "{blocked}"
        );
    }
    for blocked in ["2026-06-11T00:00", "2026-06-11T00:01", "2026-06-11T06:59"] {
        assert_eq!(
            asked(blocked).as_deref(),
            Some("2026-06-11T07:00"),
            "{blocked}"
        );
    }
    assert_eq!(asked("2026-06-11T07:00"), None);
}

/// The other way round: a window that itself spans midnight.
#[test]
fn a_window_over_midnight_is_open_on_both_sides_of_it() {
    let (night, berlin) = (window("21:00-07:00"), zone("Europe/Berlin"));
    let asked = |wall_clock: &str| opens_at(night, &berlin, wall_clock);
    let allowed = [
        "2026-06-10T21:00",
        "2026-06-10T23:59",
        "2026-06-11T00:00",
        "2026-06-11T00:01",
        "2026-06-11T06:59",
    ];
    for allowed in allowed {
        assert_eq!(asked(allowed), None, "{allowed}");
    }
    for blocked in ["2026-06-11T07:00", "2026-06-11T20:59"] {
        assert_eq!(
            asked(blocked).as_deref(),
            Some("2026-06-11T21:00"),
            "{blocked}"
        );
    }
}

/// Local times were turned into UTC by a winter day's offset, an hour off in summer.
#[test]
fn the_wall_clock_counts_in_winter_as_in_summer() {
    let awake = window("07:00-21:00");
    for name in ["America/New_York", "Europe/Berlin", "Australia/Sydney"] {
        let zone = zone(name);
        for day in ["2026-01-15", "2026-07-15"] {
            let asked = |time: &str| opens_at(awake, &zone, &format!("{day}T{time}"));
            let opening = format!("{day}T07:00");
            assert_eq!(asked("06:59"), Some(opening), "{name} {day}");
            assert_eq!(asked("07:00"), None, "{name} {day}");
            assert_eq!(asked("20:59"), None, "{name} {day}");
            assert!(asked("21:00").is_some(), "{name} {day}");
        }
    }
}

/// Arizona was treated as if it changed its clocks.
#[test]
fn arizona_keeps_its_clocks_in_summer() {
    let phoenix = [zone("America/Phoenix")];
    let asked = |now: &str| check(window("08:00-21:00"), &phoenix, at(now)).is_ok();
    for day in ["2026-01-15", "2026-07-15"] {
        assert!(!asked(&format!("{day}T14:59Z")), "{day}");
        assert!(asked(&format!("{day}T15:00Z")), "{day}");
    }
}

/// Hours of a recipient without a zone were those of UTC.
#[test]
fn a_recipient_of_unknown_zone_has_the_accounts() {
    let default = zone("America/New_York");
    for unknown in [None, Some("+80012345678"), Some("+999123456789")] {
        assert_eq!(
            zones_of_recipient(None, unknown, &default).1,
            slice::from_ref(&default)
        );
    }
}

/// The area code of a number and the zone that is stored with the recipient differ.
#[test]
fn the_zone_of_the_job_goes_before_that_of_the_number() {
    let (own, default) = (zone("America/Los_Angeles"), zone("Europe/London"));
    let number = Some("+12125550123");
    assert_eq!(
        zones_of_recipient(Some(&own), number, &default).1,
        slice::from_ref(&own)
    );
    let new_york = [zone("America/New_York")];
    assert_eq!(zones_of_recipient(None, number, &default).1, new_york);
}

/// An unknown zone failed each query that used it; aliases were unknown.
#[test]
fn aliases_are_zones_and_unknown_names_are_refused() {
    let now = at("2026-07-01T12:00Z");
    let aliases = [
        ("Asia/Katmandu", "2026-07-01T17:45:00"),
        ("Asia/Kathmandu", "2026-07-01T17:45:00"),
        ("utc", "2026-07-01T12:00:00"),
        ("EST5EDT", "2026-07-01T08:00:00"),
        ("europe/london", "2026-07-01T13:00:00"),
    ];
    for (name, expected) in aliases {
        let shown = zone(name).to_datetime(now).to_string();
        assert_eq!(shown, expected, "{name}");
    }
    for name in ["America/Nowhere", ""] {
        let said = parse_zone(name).unwrap_err().to_string();
        assert_eq!(said, "expected an IANA time zone, such as Europe/London");
    }
}

/// A window that could not be read threw at each try, for ever; equal ends meant nothing clear.
#[test]
fn windows_that_cannot_be_read_are_refused_when_they_are_written() {
    let said = |text: &str| SendWindow::parse(text).map_err(|error| error.to_string());
    for text in ["", "9", "21:00", "null"] {
        let expected = "expected a start and an end, such as 08:00-21:00";
        assert_eq!(said(text), Err(expected.to_owned()), "{text}");
    }
    for text in ["25:99-07:00", "-07:00", "null-07:00", "24:00-07:00"] {
        let expected = "expected a start from 00:00 to 23:59, such as 08:00-21:00";
        assert_eq!(said(text), Err(expected.to_owned()), "{text}");
    }
    for text in ["21:00-25:99", "21:00-", "21:00-null", "21:00-24:01"] {
        let expected = "expected an end from 00:00 to 24:00, such as 08:00-21:00";
        assert_eq!(said(text), Err(expected.to_owned()), "{text}");
    }
    let expected = "expected a start and an end that differ; 00:00-24:00 is the whole day";
    assert_eq!(said("21:00-21:00"), Err(expected.to_owned()));
    // An end before the start is a window over midnight.
    assert_eq!(said("21:00-07:00"), Ok(window("21:00-07:00")));
}

/// Zones whose offset is no whole hour were an hour wrong.
#[test]
fn offsets_of_half_and_quarter_hours_are_exact_to_the_minute() {
    let zones = [
        ("Asia/Kolkata", "2026-06-10T02:30Z"),
        ("Asia/Kathmandu", "2026-06-10T02:15Z"),
        ("Australia/Eucla", "2026-06-09T23:15Z"),
        ("America/St_Johns", "2026-06-10T10:30Z"),
        ("Pacific/Chatham", "2026-06-09T19:15Z"),
    ];
    let awake = window("08:00-21:00");
    for (name, opening) in zones {
        let zone = zone(name);
        assert_eq!(local(&zone, "2026-06-10T08:00"), at(opening), "{name}");
        let asked = |time: &str| opens_at(awake, &zone, &format!("2026-06-10T{time}"));
        assert_eq!(
            asked("07:59").as_deref(),
            Some("2026-06-10T08:00"),
            "{name}"
        );
        assert_eq!(asked("08:00"), None, "{name}");
        assert_eq!(asked("20:59"), None, "{name}");
        assert_eq!(
            asked("21:00").as_deref(),
            Some("2026-06-11T08:00"),
            "{name}"
        );
    }
}
