//! Values of options and of columns. Each error says what was expected.

use std::time::Duration;

use crate::accounts::QuietAction;
use crate::accounts::keys::KeyScope;
use crate::accounts::tables::accounts::{Setting, WindowChange};
use crate::cli::age;
use crate::cli::values::channel;
use crate::domain::{Budget, Channel, Reserve, Scope};
use crate::gates::quiet_hours::{SendWindow, parse_zone};

/// The longest id or name, in bytes: an index has room for it.
const LONGEST: usize = 1_024;

/// Messages per second, or `default`.
pub(in crate::cli) fn budget(text: &str) -> Result<Setting<Budget>, String> {
    let expected = || {
        format!(
            "expected 0 to {} messages per second, or default",
            Budget::MAX
        )
    };
    setting(text, |text| {
        let messages = text.parse().map_err(|_| expected())?;
        Budget::per_second(messages).map_err(|_| expected())
    })
}

/// A percentage, or `default`.
pub(in crate::cli) fn reserve(text: &str) -> Result<Setting<Reserve>, String> {
    let expected = || "expected 0 to 100 percent, or default".to_owned();
    setting(text, |text| {
        let text = text.strip_suffix('%').unwrap_or(text).trim_end();
        let percent = text.parse().map_err(|_| expected())?;
        Reserve::percent(percent).map_err(|_| expected())
    })
}

fn setting<T>(text: &str, parse: impl Fn(&str) -> Result<T, String>) -> Result<Setting<T>, String> {
    if text == "default" {
        return Ok(Setting::Default);
    }
    parse(text).map(Setting::Own)
}

/// `on` or `off`.
pub(in crate::cli) fn switch(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("expected on or off".to_owned()),
    }
}

/// `refuse` or `defer`.
pub(in crate::cli) fn quiet_action(text: &str) -> Result<QuietAction, String> {
    QuietAction::parse(text).ok_or_else(|| "expected refuse or defer".to_owned())
}

/// The name of a zone that exists, as it was spelled.
pub(in crate::cli) fn zone(text: &str) -> Result<String, String> {
    parse_zone(text)
        .map(|_| text.to_owned())
        .map_err(|error| error.to_string())
}

/// `sms=08:00-21:00`, `sms=off` or `sms=standard`.
pub(in crate::cli) fn window(text: &str) -> Result<(Channel, WindowChange), String> {
    let (name, window) = text
        .split_once('=')
        .ok_or("expected CHANNEL=WINDOW, such as sms=08:00-21:00")?;
    let channel = channel(name)?;
    let change = match window {
        "off" => WindowChange::Off,
        "standard" => WindowChange::Standard,
        own => WindowChange::Own(SendWindow::parse(own).map_err(|error| {
            format!("{name}: {error}; off allows every hour, standard is what accounts begin with")
        })?),
    };
    Ok((channel, change))
}

/// Several of them, with blanks between, as a cell has them.
pub(in crate::cli) fn windows(text: &str) -> Result<Vec<(Channel, WindowChange)>, String> {
    text.split_whitespace().map(window).collect()
}

/// `all`, or a channel's name.
pub(in crate::cli) fn scope(text: &str) -> Result<Scope, String> {
    let known = || Channel::ALL.map(Channel::as_str).join(", ");
    Scope::parse(text).ok_or_else(|| format!("expected all, or one of {}", known()))
}

/// A cap's name.
pub(in crate::cli) fn cap_name(text: &str) -> Result<String, String> {
    let permitted = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if text.is_empty() || text.len() > 64 || !text.bytes().all(permitted) {
        return Err("expected 1 to 64 characters of A-Z a-z 0-9 _ -".to_owned());
    }
    Ok(text.to_owned())
}

/// How many messages a cap allows.
pub(in crate::cli) fn cap_limit(text: &str) -> Result<u32, String> {
    number(text, 10_000, "messages")
}

/// How many messages a ceiling allows in a second.
pub(in crate::cli) fn rate(text: &str) -> Result<u32, String> {
    number(text, Budget::MAX, "messages per second")
}

fn number(text: &str, most: u32, what: &str) -> Result<u32, String> {
    let number = text
        .parse()
        .ok()
        .filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| format!("expected 1 to {most} {what}"))
}

/// The length of a cap's window.
pub(in crate::cli) fn cap_window(text: &str) -> Result<Duration, String> {
    const LONGEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);
    let window = age::parse(text)?;
    if window.is_zero() || window > LONGEST {
        return Err("expected 1s to 366d".to_owned());
    }
    Ok(window)
}

/// One thing that a key allows.
pub(in crate::cli) fn key_scope(text: &str) -> Result<KeyScope, String> {
    KeyScope::parse(text).ok_or_else(|| "expected one or more of send, read and admin".to_owned())
}

/// A text that jobs are compared with: the id of a campaign, a service, a category.
pub(in crate::cli) fn id(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > LONGEST || text.chars().any(char::is_control) {
        return Err(format!(
            "expected 1 to {LONGEST} bytes without control characters"
        ));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read() {
        let budget_of = |messages| Setting::Own(Budget::per_second(messages).unwrap());
        assert_eq!(budget("250"), Ok(budget_of(250)));
        assert_eq!(budget("default"), Ok(Setting::Default));
        let twenty = Setting::Own(Reserve::percent(20).unwrap());
        assert_eq!((reserve("20"), reserve("20 %")), (Ok(twenty), Ok(twenty)));
        assert_eq!(switch("on"), Ok(true));
        assert_eq!(zone("Asia/Katmandu"), Ok("Asia/Katmandu".to_owned()));
        assert_eq!(window("sms=off"), Ok((Channel::Sms, WindowChange::Off)));
        assert_eq!(windows("sms=standard  voice=21:00-07:00").unwrap().len(), 2);
        assert_eq!(cap_window("1h30m"), Ok(Duration::from_secs(5_400)));
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_was_expected() {
        for (error, expected) in [
            (
                budget("-1").unwrap_err(),
                "0 to 1000000000 messages per second, or default",
            ),
            (budget("1000000001").unwrap_err(), "0 to 1000000000"),
            (reserve("101").unwrap_err(), "0 to 100 percent"),
            (switch("yes").unwrap_err(), "on or off"),
            (quiet_action("drop").unwrap_err(), "refuse or defer"),
            (zone("America/Nowhere").unwrap_err(), "IANA time zone"),
            (zone("").unwrap_err(), "IANA time zone"),
            (window("sms").unwrap_err(), "CHANNEL=WINDOW"),
            (window("fax=off").unwrap_err(), "one of sms"),
            (window("sms=25:99").unwrap_err(), "start and an end"),
            (window("sms=21:00-21:00").unwrap_err(), "that differ"),
            (window("sms=").unwrap_err(), "start and an end"),
            (scope("every").unwrap_err(), "all, or one of sms"),
            (key_scope("").unwrap_err(), "send, read and admin"),
            (cap_name("a b").unwrap_err(), "1 to 64 characters"),
            (cap_limit("0").unwrap_err(), "1 to 10000 messages"),
            (
                rate("0").unwrap_err(),
                "1 to 1000000000 messages per second",
            ),
            (cap_window("0s").unwrap_err(), "1s to 366d"),
            (cap_window("367d").unwrap_err(), "1s to 366d"),
            (cap_window("day").unwrap_err(), "such as 90s"),
            (id("").unwrap_err(), "1 to 1024 bytes"),
            (id("a\u{7}").unwrap_err(), "without control characters"),
        ] {
            assert!(error.contains(expected), "{error}");
        }
    }
}
