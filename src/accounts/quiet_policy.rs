//! What an account wants of quiet hours, and how that is read from what is stored.

use std::borrow::Cow;
use std::collections::HashMap;

use jiff::tz::TimeZone;

use crate::domain::Channel;
use crate::gates::quiet_hours::{ChannelWindows, SendWindow, parse_zone};

/// What becomes of a job that comes outside its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuietAction {
    /// It ends as refused, with the instant at which another would pass.
    Refuse,
    /// It waits until the window opens.
    Defer,
}

impl QuietAction {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Refuse, Self::Defer];

    /// The spelling in the table and in commands.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::Defer => "defer",
        }
    }

    /// Reads an action's name; exact spelling.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.as_str() == text)
    }
}

/// When an account's recipients may be written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuietPolicy {
    /// At any hour.
    Off,
    /// Within windows of their local time.
    On {
        /// The windows.
        windows: ChannelWindows,
        /// For recipients whose own zone is not known.
        zone: TimeZone,
        /// What becomes of other jobs.
        action: QuietAction,
    },
    /// Something is stored that cannot be read, past all commands: until it is mended nobody can say
    /// which hour suits, so that nothing may be sent, on any channel.
    Broken {
        /// Which value, and what was expected there.
        why: Cow<'static, str>,
    },
}

impl QuietPolicy {
    /// Why it cannot be followed, if it cannot.
    #[must_use]
    pub fn fault(&self) -> Option<&str> {
        match self {
            Self::Broken { why } => Some(why),
            Self::Off | Self::On { .. } => None,
        }
    }
}

/// The windows of an account as they are stored: a text for each channel that has one of its own,
/// null for one that may be used at any hour.
pub type StoredWindows = HashMap<String, Option<String>>;

/// Reads the policy of an account that has quiet hours.
pub(super) fn read_stored(
    action: &str,
    zone: Option<&str>,
    windows: &str,
) -> Result<QuietPolicy, Cow<'static, str>> {
    let zone = zone.ok_or("time_zone: missing; expected an IANA time zone")?;
    let zone = parse_zone(zone).map_err(|error| format!("time_zone: {error}"))?;
    let action = QuietAction::parse(action).ok_or("quiet_action: expected refuse or defer")?;
    Ok(QuietPolicy::On {
        windows: read_windows(windows)?,
        zone,
        action,
    })
}

/// A window of a channel that nobody knows is a misspelt one: were it passed over, the channel that
/// was meant would keep its standard window, and nobody would hear of it.
fn read_windows(text: &str) -> Result<ChannelWindows, Cow<'static, str>> {
    let stored: StoredWindows = serde_json::from_str(text)
        .map_err(|_| "windows: expected an object of channels, each with a text or null")?;
    let mut windows = ChannelWindows::standard();
    for (name, own) in stored {
        let channel = Channel::parse(&name).ok_or_else(unknown_channel)?;
        let window = own.as_deref().map(SendWindow::parse).transpose();
        let window = window.map_err(|error| format!("windows, {}: {error}", channel.as_str()))?;
        windows = windows.with(channel, window);
    }
    Ok(windows)
}

fn unknown_channel() -> String {
    let known = Channel::ALL.map(Channel::as_str).join(", ");
    format!("windows: expected no channels but {known}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows_of(text: &str) -> ChannelWindows {
        match read_stored("defer", Some("Europe/London"), text) {
            Ok(QuietPolicy::On { windows, .. }) => windows,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn channels_that_are_left_out_have_their_standard_windows() {
        assert_eq!(windows_of("{}"), ChannelWindows::standard());
        let own = windows_of(r#"{"sms":"21:00-07:00","voice":null,"email":"09:00-17:00"}"#);
        let shown = |channel| own.get(channel).map(|window| window.to_string());
        assert_eq!(shown(Channel::Sms).as_deref(), Some("21:00-07:00"));
        assert_eq!(shown(Channel::Voice), None);
        assert_eq!(shown(Channel::Email).as_deref(), Some("09:00-17:00"));
        let standard = ChannelWindows::standard();
        assert_eq!(own.get(Channel::Viber), standard.get(Channel::Viber));
    }

    /// F5-16, F5-17: each has one clear reason, and none a panic.
    #[test]
    fn what_cannot_be_read_is_named() {
        let zone = Some("Europe/London");
        for (action, zone, windows, why) in [
            ("refuse", None, "{}", "time_zone: missing"),
            ("refuse", Some(""), "{}", "time_zone: expected an IANA"),
            (
                "refuse",
                Some("America/Nowhere"),
                "{}",
                "time_zone: expected an IANA",
            ),
            ("hold", zone, "{}", "quiet_action: expected"),
            ("refuse", zone, "[]", "windows: expected an object"),
            (
                "refuse",
                zone,
                r#"{"sms":7}"#,
                "windows: expected an object",
            ),
            (
                "refuse",
                zone,
                r#"{"fax":"08:00-09:00"}"#,
                "windows: expected no channels but sms,",
            ),
            (
                "refuse",
                zone,
                r#"{"sms":"08:00-09:00","SMS":null}"#,
                "windows: expected no channels but sms,",
            ),
            ("refuse", zone, r#"{"sms":""}"#, "windows, sms: expected"),
            (
                "refuse",
                zone,
                r#"{"sms":"25:99"}"#,
                "windows, sms: expected",
            ),
            ("refuse", zone, r#"{"sms":"9"}"#, "windows, sms: expected"),
            (
                "refuse",
                zone,
                r#"{"sms":"21:00-"}"#,
                "windows, sms: expected",
            ),
            (
                "refuse",
                zone,
                r#"{"sms":"21:00-21:00"}"#,
                "windows, sms: expected",
            ),
        ] {
            let found = read_stored(action, zone, windows).unwrap_err();
            assert!(found.starts_with(why), "{windows}: {found}");
        }
    }

    #[test]
    fn aliases_of_zones_are_zones() {
        for zone in ["utc", "EST5EDT", "Asia/Katmandu", "Asia/Kathmandu"] {
            assert!(read_stored("refuse", Some(zone), "{}").is_ok(), "{zone}");
        }
    }
}
