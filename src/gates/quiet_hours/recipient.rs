//! Which zones a recipient lives in, or may.

use std::slice;

use jiff::tz::TimeZone;

use crate::gates::phone_zones;

/// What the zones of a recipient are known by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZoneSource {
    /// The job names it.
    Recipient,
    /// The recipient's number tells where it may be.
    Number,
    /// Nothing else is known: it is the account's default.
    Account,
}

impl ZoneSource {
    /// The name that clients see.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Recipient => "recipient",
            Self::Number => "number",
            Self::Account => "account",
        }
    }
}

/// The zones that must all allow, and what they are known by: the one that the job names (`own`),
/// else those of the recipient's number in E.164 form, else the account's default. Never empty.
///
/// What a job names is believed even where the number says otherwise: people move and keep their
/// numbers, and whoever stored the zone knew more than a prefix tells.
#[must_use]
pub fn zones_of_recipient<'a>(
    own: Option<&'a TimeZone>,
    number: Option<&str>,
    default: &'a TimeZone,
) -> (ZoneSource, &'a [TimeZone]) {
    if let Some(own) = own {
        return (ZoneSource::Recipient, slice::from_ref(own));
    }
    match number.map_or(&[][..], phone_zones::of) {
        [] => (ZoneSource::Account, slice::from_ref(default)),
        zones => (ZoneSource::Number, zones),
    }
}
