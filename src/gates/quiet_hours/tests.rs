//! Quiet hours against the rule by brute force, above all where clocks change.

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use proptest::prelude::*;

use super::test_support::{Rule, at, opens_at, window, zone, zones};
use super::{Blocked, check};
use crate::gates::phone_zones;

/// Zones, and how often their clocks change in 2026 and 2027.
const ZONES: [(&str, usize); 11] = [
    ("America/New_York", 4),
    ("Europe/London", 4),
    ("Australia/Sydney", 4),
    ("Australia/Lord_Howe", 4),
    ("America/St_Johns", 4),
    ("Pacific/Chatham", 4),
    ("Asia/Kolkata", 0),
    ("Asia/Kathmandu", 0),
    ("America/Sao_Paulo", 0),
    ("Australia/Eucla", 0),
    ("America/Phoenix", 0),
];

/// By day, by night, all day, and in the hour that a change of clocks skips or repeats: from its very
/// start, within it, and all but it.
const WINDOWS: [&str; 8] = [
    "08:00-21:00",
    "09:00-21:00",
    "21:00-07:00",
    "00:00-24:00",
    "02:00-03:00",
    "02:10-02:50",
    "01:20-01:40",
    "02:15-01:45",
];

/// The days on which clocks change in New York, London and Sydney: for zones without such days.
const DAYS_ELSEWHERE: [&str; 4] = [
    "2026-03-08T12:00Z",
    "2026-10-25T12:00Z",
    "2027-04-03T12:00Z",
    "2027-11-07T12:00Z",
];

fn changes(zone: &TimeZone) -> Vec<Timestamp> {
    let changes = zone.following(at("2026-01-01T00:00Z"));
    let instants = changes.map(|change| change.timestamp());
    instants
        .take_while(|change| *change < at("2028-01-01T00:00Z"))
        .collect()
}

/// Each minute from the start of the day before to the end of the day after, and within each minute.
fn sweep(zones: &[TimeZone], around: Timestamp) {
    let day_before = zones[0].to_datetime(around).date() - 1.day();
    let first = zones[0].to_timestamp(day_before.into()).unwrap();
    for text in WINDOWS {
        let answers = Rule::of(text).answers(zones, first, 3 * 24 * 60);
        for (minute, expected) in answers {
            for later in [0, 29_000, 59_999] {
                let now = minute + later.milliseconds();
                assert_eq!(check(window(text), zones, now), expected, "{text} {now}");
            }
        }
    }
}

#[test]
fn every_minute_around_every_change_of_clocks_is_as_the_rule_says() {
    for (name, expected) in ZONES {
        let zone = [zone(name)];
        let changes = changes(&zone[0]);
        assert_eq!(changes.len(), expected, "{name}");
        let elsewhere = DAYS_ELSEWHERE.map(at);
        let days = if changes.is_empty() {
            &elsewhere[..]
        } else {
            &changes[..]
        };
        for day in days {
            sweep(&zone, *day);
        }
    }
}

/// Where clocks changed at midnight, and where a whole day was left out.
#[test]
fn rarer_changes_of_clocks_are_as_the_rule_says() {
    sweep(&[zone("America/Sao_Paulo")], at("2018-11-04T03:00Z"));
    sweep(&[zone("America/Sao_Paulo")], at("2019-02-17T02:00Z"));
    sweep(&[zone("Pacific/Apia")], at("2011-12-30T10:00Z"));
}

#[test]
fn several_zones_around_a_change_of_clocks_are_as_the_rule_says() {
    let mainland = zones(&[
        "America/New_York",
        "America/Chicago",
        "America/Denver",
        "America/Phoenix",
        "America/Los_Angeles",
    ]);
    sweep(&mainland, at("2026-03-08T07:00Z"));
    sweep(&mainland, at("2026-11-01T06:00Z"));
    let borders = zones(&["Australia/Lord_Howe", "Asia/Kathmandu", "Europe/London"]);
    sweep(&borders, at("2026-10-03T15:30Z"));
}

#[test]
fn a_start_that_is_skipped_means_the_first_instant_after_the_gap() {
    let new_york = zone("America/New_York");
    let opens = opens_at(window("02:30-07:00"), &new_york, "2026-03-08T01:59");
    assert_eq!(opens.as_deref(), Some("2026-03-08T03:00"));
    // Where all of it is skipped, that day has none.
    let opens = opens_at(window("02:10-02:50"), &new_york, "2026-03-08T01:59");
    assert_eq!(opens.as_deref(), Some("2026-03-09T02:10"));
}

#[test]
fn an_hour_that_is_repeated_is_allowed_both_times() {
    let new_york = [zone("America/New_York")];
    let asked = |now: &str| check(window("01:20-01:40"), &new_york, at(now));
    let from = |next| {
        let next_allowed_at = Some(at(next));
        Err(Blocked { next_allowed_at })
    };
    assert_eq!(asked("2026-11-01T05:19Z"), from("2026-11-01T05:20Z"));
    assert_eq!(asked("2026-11-01T05:39Z"), Ok(()));
    // The clock has left the window, and enters it again in the second 01:20.
    assert_eq!(asked("2026-11-01T05:40Z"), from("2026-11-01T06:20Z"));
    assert_eq!(asked("2026-11-01T06:39Z"), Ok(()));
    assert_eq!(asked("2026-11-01T06:40Z"), from("2026-11-02T06:20Z"));
}

#[test]
fn a_clock_that_is_put_back_into_the_window_opens_it_at_that_instant() {
    let new_york = [zone("America/New_York")];
    let blocked = check(window("00:00-01:30"), &new_york, at("2026-11-01T05:45Z"));
    let next_allowed_at = Some(at("2026-11-01T06:00Z"));
    assert_eq!(blocked, Err(Blocked { next_allowed_at }));
}

#[test]
fn a_number_on_a_border_of_zones_is_allowed_when_both_sides_allow() {
    let alaska = phone_zones::of("+19075550123");
    assert_eq!(alaska.len(), 2);
    let asked = |now: &str| check(window("08:00-21:00"), alaska, at(now));
    // 08:00 in Anchorage is 07:00 on Adak, and 21:00 in Anchorage 20:00 on Adak.
    let next_allowed_at = Some(at("2026-07-01T17:00Z"));
    assert_eq!(asked("2026-07-01T16:30Z"), Err(Blocked { next_allowed_at }));
    assert_eq!(asked("2026-07-01T17:00Z"), Ok(()));
    assert_eq!(asked("2026-07-02T04:59Z"), Ok(()));
    let next_allowed_at = Some(at("2026-07-02T17:00Z"));
    assert_eq!(asked("2026-07-02T05:00Z"), Err(Blocked { next_allowed_at }));
}

/// From Guam, where it is still 08:00 the next day, to Newfoundland, where it is soon 21:00.
#[test]
fn a_toll_free_number_is_allowed_while_the_whole_of_its_plan_is_awake() {
    let toll_free = phone_zones::of("+18005550123");
    let asked = |now: &str| check(window("08:00-21:00"), toll_free, at(now));
    let next_allowed_at = Some(at("2026-07-01T22:00Z"));
    assert_eq!(asked("2026-07-01T12:00Z"), Err(Blocked { next_allowed_at }));
    assert_eq!(asked("2026-07-01T22:00Z"), Ok(()));
    assert_eq!(asked("2026-07-01T23:29Z"), Ok(()));
    let next_allowed_at = Some(at("2026-07-02T22:00Z"));
    assert_eq!(asked("2026-07-01T23:30Z"), Err(Blocked { next_allowed_at }));
}

#[test]
fn zones_that_are_never_awake_at_once_have_no_next_instant() {
    let far_apart = zones(&["America/New_York", "Asia/Kolkata"]);
    let blocked = check(window("09:00-17:00"), &far_apart, at("2026-07-01T15:00Z"));
    let next_allowed_at = None;
    assert_eq!(blocked, Err(Blocked { next_allowed_at }));
}

#[test]
fn at_the_end_of_time_there_is_no_next_instant_and_no_panic() {
    let london = [zone("Europe/London")];
    let blocked = check(window("08:00-09:00"), &london, Timestamp::MAX);
    let next_allowed_at = None;
    assert_eq!(blocked, Err(Blocked { next_allowed_at }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_window_in_any_zones_at_any_instant_is_as_the_rule_says(
        chosen in proptest::sample::subsequence(ZONES.to_vec(), 1..=3),
        start in 0..24 * 60u16,
        length in 1..=24 * 60u16,
        // 2024 to 2030, in milliseconds.
        now in 1_704_067_200_000..1_893_456_000_000i64,
    ) {
        let end = (start + length) % (24 * 60);
        let end = if end == start { 24 * 60 } else { end };
        prop_assume!(start != end);
        let text = [start, end].map(|minutes| format!("{:02}:{:02}", minutes / 60, minutes % 60));
        let text = text.join("-");
        let zones: Vec<TimeZone> = chosen.iter().map(|(name, _)| zone(name)).collect();
        let now = Timestamp::from_millisecond(now).unwrap();
        let expected = Rule::of(&text).answers(&zones, now, 1)[0].1;
        prop_assert_eq!(check(window(&text), &zones, now), expected);
    }
}
