//! Where jobs are published to.

use std::fmt;

use thiserror::Error;

use crate::{AccountId, Lane};

/// A prefix that no names can be made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "the prefix of queue names must be 1 to {max} characters of A-Z a-z 0-9 . _ - and not begin with \"amq.\"",
    max = Prefix::MAX
)]
pub struct PrefixError;

/// What the names of all exchanges and queues of one installation begin with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix(Box<str>);

impl Prefix {
    /// The prefix where nobody has chosen another.
    pub const DEFAULT: &'static str = "lanekeeper";

    /// AMQP names have at most 255 bytes; this leaves room for every suffix and account.
    pub const MAX: usize = 100;

    /// Reads a prefix.
    ///
    /// # Errors
    /// When it is empty, too long, has a character outside its alphabet, or is the broker's own.
    pub fn parse(text: &str) -> Result<Self, PrefixError> {
        let permitted =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        let fits = !text.is_empty()
            && text.len() <= Self::MAX
            && text.bytes().all(permitted)
            && !text.starts_with("amq.");
        fits.then(|| Self(text.into())).ok_or(PrefixError)
    }

    /// The exchange that every publisher sends to.
    #[must_use]
    pub fn send(&self) -> String {
        format!("{self}.send")
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The routing key of a job.
#[must_use]
pub fn routing_key(lane: Lane, account: &AccountId) -> String {
    format!("{lane}.{account}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_keeps_to_its_alphabet_and_length() {
        assert!(Prefix::parse("a.B_9-").is_ok());
        assert!(Prefix::parse(&"x".repeat(Prefix::MAX)).is_ok());
        for bad in ["", "a b", "ä", "a#", "a*", "amq.x", &"x".repeat(101)] {
            assert_eq!(Prefix::parse(bad).err(), Some(PrefixError), "{bad}");
        }
    }

    #[test]
    fn jobs_go_to_one_exchange_by_lane_and_account() {
        let account = AccountId::parse("acme").unwrap();
        assert_eq!(Prefix::parse("lk").unwrap().send(), "lk.send");
        assert_eq!(routing_key(Lane::Marketing, &account), "marketing.acme");
    }
}
