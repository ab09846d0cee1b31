//! What the tests of quiet hours share: short ways to write things, and the rule by brute force.

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use super::{Blocked, SendWindow, check, parse_zone};

pub fn window(text: &str) -> SendWindow {
    SendWindow::parse(text).unwrap()
}

pub fn zone(name: &str) -> TimeZone {
    parse_zone(name).unwrap()
}

pub fn zones(names: &[&str]) -> Vec<TimeZone> {
    names.iter().map(|name| zone(name)).collect()
}

pub fn at(instant: &str) -> Timestamp {
    instant.parse().unwrap()
}

/// The instant at which the zone's wall clock shows this, such as `2026-07-01T20:59`.
pub fn local(zone: &TimeZone, wall_clock: &str) -> Timestamp {
    zone.to_timestamp(wall_clock.parse().unwrap()).unwrap()
}

/// The answer for one zone at a time of its wall clock: `None`: allowed; else from when on, as its
/// wall clock then shows.
pub fn opens_at(window: SendWindow, zone: &TimeZone, wall_clock: &str) -> Option<String> {
    let now = local(zone, wall_clock);
    let blocked = check(window, std::slice::from_ref(zone), now).err()?;
    let opening = zone.to_datetime(blocked.next_allowed_at.unwrap());
    Some(opening.strftime("%Y-%m-%dT%H:%M").to_string())
}

/// The rule, minute by minute: whether a wall clock that shows such a minute of the day is within
/// the window, walked from its start to its end.
pub struct Rule([bool; 24 * 60]);

impl Rule {
    pub fn of(window: &str) -> Self {
        let (start, end) = window.split_once('-').unwrap();
        let minute = |time: &str| {
            let (hours, minutes) = time.split_once(':').unwrap();
            let [hours, minutes] = [hours, minutes].map(|digits| digits.parse::<usize>().unwrap());
            hours * 60 + minutes
        };
        let (mut minute_now, end) = (minute(start), minute(end) % (24 * 60));
        let mut allowed = [false; 24 * 60];
        loop {
            allowed[minute_now] = true;
            minute_now = (minute_now + 1) % (24 * 60);
            if minute_now == end {
                return Self(allowed);
            }
        }
    }

    /// What `check` must say in each of so many minutes, by going through all of them, and eight
    /// more days, from the last to the first.
    pub fn answers(
        &self,
        zones: &[TimeZone],
        first: Timestamp,
        minutes: usize,
    ) -> Vec<(Timestamp, Result<(), Blocked>)> {
        let all = minutes_from(first).take(minutes + 8 * 24 * 60);
        let mut next = None;
        let answer = |minute| {
            if self.allows(zones, minute) {
                next = Some(minute);
                return (minute, Ok(()));
            }
            let next_allowed_at = next.filter(|next| *next <= minute + (8 * 24).hours());
            (minute, Err(Blocked { next_allowed_at }))
        };
        let backwards = all.collect::<Vec<_>>().into_iter().rev().map(answer);
        let mut answers: Vec<_> = backwards.collect();
        answers.reverse();
        answers.truncate(minutes);
        answers
    }

    fn allows(&self, zones: &[TimeZone], at: Timestamp) -> bool {
        zones.iter().all(|zone| {
            let shown = zone.to_datetime(at).time();
            let [hour, minute] = [shown.hour(), shown.minute()].map(i8::unsigned_abs);
            self.0[usize::from(hour) * 60 + usize::from(minute)]
        })
    }
}

/// The whole minutes from the one that an instant is in.
fn minutes_from(instant: Timestamp) -> impl Iterator<Item = Timestamp> {
    let minute = instant.as_second().div_euclid(60);
    (minute..).map(|minute| Timestamp::from_second(minute * 60).unwrap())
}
