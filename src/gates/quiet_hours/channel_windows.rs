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
