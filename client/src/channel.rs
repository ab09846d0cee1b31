//! The channels that a message can travel on.

/// A way to reach a recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each name is the channel")]
pub enum Channel {
    Sms,
    Whatsapp,
    Email,
    Rcs,
    Viber,
    Messenger,
    Line,
    Telegram,
    Push,
    Voice,
}

impl Channel {
    /// Every channel.
    pub const ALL: [Self; 10] = [
        Self::Sms,
        Self::Whatsapp,
        Self::Email,
        Self::Rcs,
        Self::Viber,
        Self::Messenger,
        Self::Line,
        Self::Telegram,
        Self::Push,
        Self::Voice,
    ];

    /// The spelling in jobs, settings and events.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sms => "sms",
            Self::Whatsapp => "whatsapp",
            Self::Email => "email",
            Self::Rcs => "rcs",
            Self::Viber => "viber",
            Self::Messenger => "messenger",
            Self::Line => "line",
            Self::Telegram => "telegram",
            Self::Push => "push",
            Self::Voice => "voice",
        }
    }

    /// Reads a channel's name; exact spelling.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|channel| channel.as_str() == text)
    }

    /// Whether a recipient on this channel is a telephone number (the others use addresses or ids
    /// of their own).
    #[must_use]
    pub const fn is_phone(self) -> bool {
        matches!(
            self,
            Self::Sms | Self::Whatsapp | Self::Rcs | Self::Viber | Self::Voice
        )
    }
}
