//! Numbers, times and sentences for people.

use std::time::Duration;

/// The widest line.
pub const WIDTH: usize = 80;

/// `1,234,567`.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 worker`, `1,200 workers`.
#[must_use]
pub fn count(number: u64, what: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {what}{ending}", grouped(number))
}

/// Milliseconds, rounded up, so that no wait is shown shorter than it was.
#[must_use]
pub fn millis(duration: Duration) -> u128 {
    duration.as_micros().div_ceil(1000)
}

/// `12 s`, `3 min 20 s`, `3 h 28 min`, `2 days 4 h`.
#[must_use]
pub fn about(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{minutes} min {} s", seconds % 60),
        3_600..86_400 => format!("{hours} h {} min", minutes % 60),
        _ => format!("{} {} h", count(days, "day"), hours % 24),
    }
}

/// A text in lines that are not too wide, where its words allow it; all but the first begin with
/// `indent` spaces, and so much is taken by something else on the first.
#[must_use]
pub fn wrapped(text: &str, indent: usize) -> String {
    let mut lines = String::new();
    let mut width = indent;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if width > indent && width + 1 + length > WIDTH {
            lines.push('\n');
            lines.extend(std::iter::repeat_n(' ', indent));
            width = indent;
        } else if width > indent {
            lines.push(' ');
            width += 1;
        }
        lines.push_str(word);
        width += length;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        let grouped: Vec<_> = [0, 999, 1_000, 1_234_567].map(grouped).into();
        assert_eq!(grouped, ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([1, 2].map(|n| count(n, "row")), ["1 row", "2 rows"]);
    }

    #[test]
    fn times_have_two_units_at_most() {
        let times = [59, 60, 12_480, 187_200, 90_000].map(about);
        let expected = ["59 s", "1 min 0 s", "3 h 28 min", "2 days 4 h", "1 day 1 h"];
        assert_eq!(times, expected);
        assert_eq!(millis(Duration::from_micros(5_001)), 6);
    }

    #[test]
    fn lines_break_between_words() {
        let text = "word ".repeat(40);
        let wrapped = wrapped(&text, 20);
        assert!(wrapped.lines().all(|line| line.len() <= WIDTH));
        assert_eq!(wrapped.split_whitespace().count(), 40);
        assert_eq!(wrapped.lines().count(), 4);
        let second = wrapped.lines().nth(1).unwrap();
        assert!(second.starts_with(&" ".repeat(20)), "{wrapped}");
    }
}
