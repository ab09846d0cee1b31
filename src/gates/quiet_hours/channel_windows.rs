//! The windows of an account, one per channel.

use super::SendWindow;
use crate::domain::Channel;

/// The send window of each channel, or that it has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelWindows([Option<SendWindow>; Channel::ALL.len()]);

impl ChannelWindows {
    /// Allows every channel at any hour.
    pub const NONE: Self = Self([None; Channel::ALL.len()]);

    /// What holds where an account asks for quiet hours and says nothing more: SMS, RCS and calls
    /// 08:00 to 21:00, WhatsApp and the messengers 09:00 to 21:00; e-mail and push, which wait
    /// silently on the recipient's device, at any hour.
    #[must_use]
    pub fn standard() -> Self {
        Self(Channel::ALL.map(standard_window))
    }

    /// The channel's window; `None`: it may be used at any hour.
    #[must_use]
    pub const fn get(&self, channel: Channel) -> Option<SendWindow> {
        self.0[channel as usize]
    }

    /// The same with another window for one channel.
    #[must_use]
    pub const fn with(mut self, channel: Channel, window: Option<SendWindow>) -> Self {
        self.0[channel as usize] = window;
        self
    }
}

const fn standard_window(channel: Channel) -> Option<SendWindow> {
    match channel {
        Channel::Sms | Channel::Rcs | Channel::Voice => Some(SendWindow::of_hours(8, 21)),
        Channel::Whatsapp
        | Channel::Viber
        | Channel::Messenger
        | Channel::Line
        | Channel::Telegram => Some(SendWindow::of_hours(9, 21)),
        Channel::Email | Channel::Push => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standard(channel: Channel) -> Option<String> {
        let window = ChannelWindows::standard().get(channel);
        window.map(|window| window.to_string())
    }

    #[test]
    fn calls_and_texts_may_begin_an_hour_before_messengers() {
        for channel in [Channel::Sms, Channel::Rcs, Channel::Voice] {
            assert_eq!(
                standard(channel).as_deref(),
                Some("08:00-21:00"),
                "{channel:?}"
            );
        }
        let messengers = [
            Channel::Whatsapp,
            Channel::Viber,
            Channel::Messenger,
            Channel::Line,
            Channel::Telegram,
        ];
        for channel in messengers {
            assert_eq!(
                standard(channel).as_deref(),
                Some("09:00-21:00"),
                "{channel:?}"
            );
        }
        for channel in [Channel::Email, Channel::Push] {
            assert_eq!(standard(channel), None, "{channel:?}");
        }
    }

    #[test]
    fn each_channel_has_a_window_of_its_own() {
        let night = SendWindow::parse("21:00-07:00").ok();
        for changed in Channel::ALL {
            let windows = ChannelWindows::NONE.with(changed, night);
            for channel in Channel::ALL {
                let expected = night.filter(|_| channel == changed);
                assert_eq!(windows.get(channel), expected, "{changed:?} {channel:?}");
            }
            assert_eq!(windows.with(changed, None), ChannelWindows::NONE);
        }
    }
}
