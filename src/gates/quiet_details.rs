//! What an account's quiet hours say of a recipient, in the words that clients see.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::quiet_hours::{ZoneSource, explain, zones_of_recipient};
use crate::accounts::{AccountPolicy, QuietPolicy};
use crate::domain::{Channel, Job};

/// Why a message may or may not go out at that hour. A closed list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuietReason {
    /// The account has no quiet hours.
    QuietHoursOff,
    /// The account's quiet hours do not concern this channel.
    AnyHour,
    /// Every possible zone of the recipient is within the window.
    WithinWindow,
    /// A possible zone of the recipient is outside the window.
    OutsideWindow,
    /// The recipient's possible zones are never within the window at once.
    NeverWithinWindow,
    /// What is stored of the account's quiet hours cannot be read: nothing goes out until an
    /// operator mends it.
    PolicyUnreadable,
}

impl QuietReason {
    /// The name that clients see.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::QuietHoursOff => "quiet_hours_off",
            Self::AnyHour => "any_hour",
            Self::WithinWindow => "within_window",
            Self::OutsideWindow => "outside_window",
            Self::NeverWithinWindow => "never_within_window",
            Self::PolicyUnreadable => "policy_unreadable",
        }
    }

    /// Whether a message may go out.
    #[must_use]
    pub const fn allows(self) -> bool {
        matches!(
            self,
            Self::QuietHoursOff | Self::AnyHour | Self::WithinWindow
        )
    }
}

/// What quiet hours say, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuietDetails {
    /// Whether a message may go out now, and why.
    pub reason: QuietReason,
    /// The IANA name of the zone that decides: while sending is allowed the one whose window closes
    /// first, else the one that opens last. `None` where no zone is asked.
    pub local_timezone: Option<String>,
    /// What the possible zones are known by.
    pub source: Option<ZoneSource>,
    /// Every possible zone of the recipient, by its IANA name.
    pub possible_timezones: Vec<String>,
    /// When the channel's window opens, as the deciding zone's clock shows it: `08:00`.
    pub window_start_local: Option<String>,
    /// When it closes: `21:00`, or `24:00` for the end of the day. An end before the start is on the
    /// next day.
    pub window_end_local: Option<String>,
    /// While sending is not allowed: the first instant at which it is, if there is one within eight
    /// days.
    pub next_allowed_at: Option<Timestamp>,
}

impl QuietDetails {
    fn without_zone(reason: QuietReason) -> Self {
        Self {
            reason,
            local_timezone: None,
            source: None,
            possible_timezones: Vec::new(),
            window_start_local: None,
            window_end_local: None,
            next_allowed_at: None,
        }
    }
}

/// Who would receive a message, and by what.
#[derive(Debug, Clone, Copy)]
pub struct Receiver<'a> {
    /// The channel.
    pub channel: Channel,
    /// The recipient; on a phone channel in E.164 form. Others tell no zone.
    pub to: &'a str,
    /// The zone that the message names.
    pub zone: Option<&'a TimeZone>,
}

/// What the account's quiet hours say of a message to this recipient now. The answer is that of the
/// gate that the message would meet.
#[must_use]
pub fn preview(policy: &AccountPolicy, receiver: Receiver<'_>, now: Timestamp) -> QuietDetails {
    let (windows, default) = match &policy.quiet_hours {
        QuietPolicy::Off => return QuietDetails::without_zone(QuietReason::QuietHoursOff),
        QuietPolicy::Broken { .. } => {
            return QuietDetails::without_zone(QuietReason::PolicyUnreadable);
        }
        QuietPolicy::On { windows, zone, .. } => (windows, zone),
    };
    let Some(window) = windows.get(receiver.channel) else {
        return QuietDetails::without_zone(QuietReason::AnyHour);
    };
    let number = receiver.channel.is_phone().then_some(receiver.to);
    let (source, zones) = zones_of_recipient(receiver.zone, number, default);
    let explained = explain(window, zones, now);
    QuietDetails {
        reason: match (explained.allowed, explained.next_allowed_at) {
            (true, _) => QuietReason::WithinWindow,
            (false, Some(_)) => QuietReason::OutsideWindow,
            (false, None) => QuietReason::NeverWithinWindow,
        },
        local_timezone: explained.zone.and_then(name),
        source: Some(source),
        possible_timezones: zones.iter().filter_map(name).collect(),
        window_start_local: Some(window.start()),
        window_end_local: Some(window.end()),
        next_allowed_at: explained.next_allowed_at,
    }
}

/// What there is to say of a job that quiet hours do not let pass now; `None`: they let it pass.
#[must_use]
pub fn quiet_details(policy: &AccountPolicy, job: &Job, now: Timestamp) -> Option<QuietDetails> {
    let receiver = Receiver {
        channel: job.channel,
        to: &job.to,
        zone: job.recipient_zone.as_ref(),
    };
    let details = preview(policy, receiver, now);
    (!details.reason.allows()).then_some(details)
}

fn name(zone: &TimeZone) -> Option<String> {
    zone.iana_name().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::QuietAction;
    use crate::domain::{Budget, Ceilings, Reserve};
    use crate::gates::quiet_hours::{ChannelWindows, parse_zone};

    fn policy(quiet_hours: QuietPolicy) -> AccountPolicy {
        let budget = Budget::per_second(100).unwrap();
        let ceilings = Ceilings::of(budget, Reserve::percent(20).unwrap());
        AccountPolicy {
            quiet_hours,
            ..AccountPolicy::of(ceilings)
        }
    }

    fn standard() -> AccountPolicy {
        policy(QuietPolicy::On {
            windows: ChannelWindows::standard(),
            zone: parse_zone("Europe/London").unwrap(),
            action: QuietAction::Refuse,
        })
    }

    fn of(policy: &AccountPolicy, channel: Channel, to: &str, now: &str) -> QuietDetails {
        let receiver = Receiver {
            channel,
            to,
            zone: None,
        };
        preview(policy, receiver, now.parse().unwrap())
    }

    #[test]
    fn a_refusal_says_where_until_when_and_why() {
        let details = of(
            &standard(),
            Channel::Sms,
            "+12125550123",
            "2026-07-01T11:00:00Z",
        );
        assert_eq!(
            details,
            QuietDetails {
                reason: QuietReason::OutsideWindow,
                local_timezone: Some("America/New_York".to_owned()),
                source: Some(ZoneSource::Number),
                possible_timezones: vec!["America/New_York".to_owned()],
                window_start_local: Some("08:00".to_owned()),
                window_end_local: Some("21:00".to_owned()),
                next_allowed_at: Some("2026-07-01T12:00:00Z".parse().unwrap()),
            }
        );
    }

    #[test]
    fn what_is_allowed_has_no_next_instant() {
        let details = of(
            &standard(),
            Channel::Whatsapp,
            "+12125550123",
            "2026-07-01T18:00:00Z",
        );
        assert_eq!(details.reason, QuietReason::WithinWindow);
        assert_eq!(details.window_start_local.as_deref(), Some("09:00"));
        assert_eq!(details.next_allowed_at, None);
    }

    #[test]
    fn a_number_of_several_zones_says_which_one_decides() {
        // Toll-free: anywhere in the country or its territories.
        let details = of(
            &standard(),
            Channel::Sms,
            "+18005550123",
            "2026-07-01T14:00:00Z",
        );
        assert!(!details.reason.allows());
        assert!(details.possible_timezones.len() > 30);
        let decides = details.local_timezone.unwrap();
        assert!(details.possible_timezones.contains(&decides), "{decides}");
        let next = details.next_allowed_at.unwrap();
        let there = parse_zone(&decides).unwrap().to_datetime(next);
        assert_eq!((there.hour(), there.minute()), (8, 0), "it opens then");
    }

    /// F5-15: never silently UTC.
    #[test]
    fn an_unknown_place_has_the_zone_of_the_account() {
        for (channel, to) in [
            (Channel::Telegram, "someone"),
            (Channel::Sms, "+80012345678"),
        ] {
            let details = of(&standard(), channel, to, "2026-07-01T02:00:00Z");
            assert_eq!(details.local_timezone.as_deref(), Some("Europe/London"));
            assert_eq!(details.source, Some(ZoneSource::Account));
        }
    }

    #[test]
    fn where_no_window_holds_no_zone_is_asked() {
        let broken = policy(QuietPolicy::Broken { why: "x".into() });
        for (policy, channel, reason) in [
            (
                &policy(QuietPolicy::Off),
                Channel::Sms,
                QuietReason::QuietHoursOff,
            ),
            (&standard(), Channel::Email, QuietReason::AnyHour),
            (&broken, Channel::Email, QuietReason::PolicyUnreadable),
        ] {
            let details = of(policy, channel, "x", "2026-07-01T02:00:00Z");
            assert_eq!(details, QuietDetails::without_zone(reason));
        }
        assert!(!QuietReason::PolicyUnreadable.allows());
    }

    /// What clients are told, and what the gate does, must not differ.
    #[test]
    fn the_answer_is_that_of_the_gate() {
        use crate::dispatch::ports::Facts;
        use crate::domain::Decoded;
        use crate::gates::{Case, Gate, TurnedAway};
        use crate::intake::decode::decode;

        let policy = standard();
        let numbers = [
            "+12125550123",
            "+18005550123",
            "+442071838750",
            "+80012345678",
        ];
        for (hour, to) in (0..24).flat_map(|hour| numbers.map(|to| (hour, to))) {
            let message = format!(
                r#"{{"id":"j","account_id":"acme","channel":"sms","to":"{to}","body":"x"}}"#
            );
            let Decoded::Job(job) = decode(message.into(), None).decoded else {
                panic!("{to}");
            };
            let now: Timestamp = format!("2026-07-01T{hour:02}:30:00Z").parse().unwrap();
            let case = Case {
                job: &job,
                policy: &policy,
                facts: Some(&Facts::default()),
                now,
            };
            let next = match Gate::QuietHours.judge(case) {
                None => None,
                Some(TurnedAway::Ended {
                    next_allowed_at, ..
                }) => Some(next_allowed_at),
                Some(other) => panic!("{other:?}"),
            };
            let details = quiet_details(&policy, &job, now);
            assert_eq!(
                details.map(|details| details.next_allowed_at),
                next,
                "{to} {now}"
            );
        }
    }
}
