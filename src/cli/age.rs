//! Ages and other lengths of time: as they are typed, and as they are shown.

use std::time::Duration;

const UNITS: [(char, u64); 5] = [
    ('w', 7 * 86_400),
    ('d', 86_400),
    ('h', 3_600),
    ('m', 60),
    ('s', 1),
];

/// Reads `90s`, `10m`, `1h30m`, `2d` or `1w`.
///
/// # Errors
/// What was expected.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || "expected a time such as 90s, 10m, 1h30m, 2d or 1w".to_owned();
    let mut seconds = 0_u64;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let (number, after) = rest.split_at(end);
        let mut after = after.chars();
        let letter = after.next();
        let unit = UNITS.iter().find(|(unit, _)| Some(*unit) == letter);
        let (_, length) = unit.ok_or_else(wrong)?;
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let part = number.checked_mul(*length).ok_or_else(wrong)?;
        seconds = seconds.checked_add(part).ok_or_else(wrong)?;
        rest = after.as_str();
    }
    if text.is_empty() {
        return Err(wrong());
    }
    Ok(Duration::from_secs(seconds))
}

/// The age in its largest unit: `5d`, `3h`, `12m`, `7s`; `unknown` where it is not known.
pub(super) fn show(age: Option<Duration>) -> String {
    let Some(age) = age.map(|age| age.as_secs()) else {
        return "unknown".to_owned();
    };
    let days_and_less = &UNITS[1..];
    let fitting = days_and_less.iter().find(|(_, length)| age >= *length);
    fitting.map_or_else(
        || "0s".to_owned(),
        |(unit, length)| format!("{}{unit}", age / length),
    )
}

/// A length of whole seconds as it would be typed: `24h` is `1d`, and 90 minutes are `1h30m`.
pub(super) fn exact(length: Duration) -> String {
    let mut left = length.as_secs();
    let mut text = String::new();
    for (unit, length) in &UNITS[1..] {
        let count = left / length;
        left %= length;
        if count > 0 {
            text += &count.to_string();
            text.push(*unit);
        }
    }
    if text.is_empty() {
        text += "0s";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_read_in_any_units() {
        for (text, seconds) in [
            ("0s", 0),
            ("90s", 90),
            ("10m", 600),
            ("1h30m", 5_400),
            ("2d", 172_800),
            ("1w1s", 604_801),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
    }

    #[test]
    fn anything_else_is_explained() {
        for text in [
            "",
            "1",
            "h",
            "-1h",
            "1 h",
            "1y",
            "1.5h",
            "99999999999999999999w",
        ] {
            assert!(parse(text).unwrap_err().contains("such as"), "{text}");
        }
        assert!(parse("18446744073709551615w").is_err());
    }

    #[test]
    fn ages_are_shown_in_one_unit() {
        for (seconds, shown) in [
            (0, "0s"),
            (59, "59s"),
            (61, "1m"),
            (7_199, "1h"),
            (864_000, "10d"),
        ] {
            assert_eq!(show(Some(Duration::from_secs(seconds))), shown);
        }
        assert_eq!(show(None), "unknown");
    }

    #[test]
    fn lengths_are_shown_as_they_would_be_typed() {
        for (seconds, shown) in [
            (0, "0s"),
            (90, "1m30s"),
            (5_400, "1h30m"),
            (604_801, "7d1s"),
        ] {
            let length = Duration::from_secs(seconds);
            assert_eq!(exact(length), shown);
            assert_eq!(parse(shown), Ok(length));
        }
    }
}
