//! The hours of the day in which sending is allowed.

use std::fmt;

use jiff::{SignedDuration, civil::Time};
use thiserror::Error;

const MINUTES_PER_DAY: u16 = 24 * 60;

/// When sending is allowed, in the recipient's local wall-clock time: from its start up to, but not
/// including, its end, each day. One whose end is before its start spans midnight: `21:00-07:00`
/// allows the night.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SendWindow {
    /// Minutes since midnight, below those of a day.
    start: u16,
    /// Minutes since midnight, up to those of a day; never equal to `start`.
    end: u16,
}

/// Why a text is no send window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum WindowError {
    /// Not two times of day with a hyphen between them.
    #[error("expected a start and an end, such as 08:00-21:00")]
    Form,
    /// The start is no time of day.
    #[error("expected a start from 00:00 to 23:59, such as 08:00-21:00")]
    Start,
    /// The end is no time of day.
    #[error("expected an end from 00:00 to 24:00, such as 08:00-21:00")]
    End,
    /// Both are the same, which could mean never as well as always.
    #[error("expected a start and an end that differ; 00:00-24:00 is the whole day")]
    Equal,
}

impl SendWindow {
    /// Reads `HH:MM-HH:MM`. A start is 00:00 to 23:59; an end is 00:00 to 24:00, the end of the day.
    ///
    /// # Errors
    /// [`WindowError`], for anything else, and when start and end are equal.
    pub fn parse(text: &str) -> Result<Self, WindowError> {
        let (start, end) = text.split_once('-').ok_or(WindowError::Form)?;
        let start = minutes(start).filter(|start| *start < MINUTES_PER_DAY);
        let start = start.ok_or(WindowError::Start)?;
        let end = minutes(end).ok_or(WindowError::End)?;
        if start == end {
            return Err(WindowError::Equal);
        }
        Ok(Self { start, end })
    }

    /// Whether it allows sending at that local time.
    #[must_use]
    pub fn allows(self, local: Time) -> bool {
        let minute = minute_of_day(local);
        if self.start < self.end {
            (self.start..self.end).contains(&minute)
        } else {
            minute >= self.start || minute < self.end
        }
    }

    /// Its start, such as `08:00`.
    #[must_use]
    pub fn start(self) -> String {
        hh_mm(self.start)
    }

    /// Its end, such as `21:00`; that of a day is `24:00`.
    #[must_use]
    pub fn end(self) -> String {
        hh_mm(self.end)
    }

    /// How long a wall clock that is not changed meanwhile takes to get from that time to the start:
    /// zero to a day, the day excluded.
    pub(super) fn until_start(self, local: Time) -> SignedDuration {
        until(self.start, local)
    }

    /// The same for the end.
    pub(super) fn until_end(self, local: Time) -> SignedDuration {
        until(self.end, local)
    }

    /// From whole hours; both within a day, and not equal.
    pub(super) const fn of_hours(start: u16, end: u16) -> Self {
        assert!(start < 24 && end <= 24 && start != end);
        Self {
            start: start * 60,
            end: end * 60,
        }
    }
}

impl fmt::Display for SendWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.start(), self.end())
    }
}

fn hh_mm(minutes: u16) -> String {
    format!("{:02}:{:02}", minutes / 60, minutes % 60)
}

/// How long a wall clock that is not changed meanwhile takes to get to that minute of a day.
fn until(minute: u16, local: Time) -> SignedDuration {
    let day = SignedDuration::from_hours(24);
    let ahead = SignedDuration::from_mins(minute.into()) - local.duration_since(Time::midnight());
    if ahead.is_negative() {
        ahead + day
    } else {
        ahead
    }
}

/// The minutes since midnight of `HH:MM`, up to those of a day.
fn minutes(text: &str) -> Option<u16> {
    let (hours, minutes) = text.split_once(':')?;
    let minutes = two_digits(hours)? * 60 + two_digits(minutes).filter(|minutes| *minutes < 60)?;
    (minutes <= MINUTES_PER_DAY).then_some(minutes)
}

fn two_digits(text: &str) -> Option<u16> {
    let digits = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

fn minute_of_day(local: Time) -> u16 {
    let [hour, minute] = [local.hour(), local.minute()].map(i8::unsigned_abs);
    u16::from(hour) * 60 + u16::from(minute)
}

#[cfg(test)]
mod tests {
    use jiff::civil::time;
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<SendWindow, WindowError> {
        SendWindow::parse(text)
    }

    #[test]
    fn its_start_is_in_it_and_its_end_is_not() {
        let day = parse("08:00-21:00").unwrap();
        assert!(!day.allows(time(7, 59, 59, 999_999_999)));
        assert!(day.allows(time(8, 0, 0, 0)));
        assert!(day.allows(time(20, 59, 59, 999_999_999)));
        assert!(!day.allows(time(21, 0, 0, 0)));
    }

    #[test]
    fn an_end_of_24_00_is_the_end_of_the_day() {
        let evening = parse("21:00-24:00").unwrap();
        assert!(evening.allows(time(23, 59, 59, 999_999_999)));
        assert!(!evening.allows(time(0, 0, 0, 0)));
        let always = parse("00:00-24:00").unwrap();
        assert!(always.allows(time(0, 0, 0, 0)));
        assert!(always.allows(time(23, 59, 59, 999_999_999)));
    }

    #[test]
    fn only_two_times_of_two_digits_each_are_read() {
        let forms = ["", "9", "08:00", "08:00/21:00", "08:00\u{2013}21:00"];
        for text in forms {
            assert_eq!(parse(text), Err(WindowError::Form), "{text:?}");
        }
        let starts = [
            "-21:00",
            "8:00-21:00",
            "24:00-21:00",
            "08:60-21:00",
            "0800-21:00",
            "+8:00-21:00",
            " 08:00-21:00",
            "08:00:00-21:00",
            "٠٨:٠٠-21:00",
        ];
        for text in starts {
            assert_eq!(parse(text), Err(WindowError::Start), "{text:?}");
        }
        let ends = [
            "08:00-",
            "08:00-9",
            "08:00-24:01",
            "08:00-25:99",
            "08:00- 21:00",
            "08:00-21:00-",
            "08:00-21:00 ",
        ];
        for text in ends {
            assert_eq!(parse(text), Err(WindowError::End), "{text:?}");
        }
        for text in ["00:00-00:00", "21:00-21:00"] {
            assert_eq!(parse(text), Err(WindowError::Equal), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_it_shows_is_what_it_was_read_from(start in 0..24 * 60u16, end in 0..=24 * 60u16) {
            prop_assume!(start != end);
            let text = SendWindow { start, end }.to_string();
            prop_assert_eq!(parse(&text), Ok(SendWindow { start, end }));
            prop_assert_eq!(text.len(), "08:00-21:00".len());
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,16}|[0-9:-]{0,12}") {
            if let Ok(window) = parse(&text) {
                prop_assert_eq!(window.to_string(), text);
            }
        }
    }
}
