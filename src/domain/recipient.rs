//! The form in which recipients are compared, and who has opted out of what.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use thiserror::Error;

use super::{AccountId, Channel, PhoneError, Region, normalise_number};
use crate::digest::hex;

/// The longest recipient that can be written down, in bytes: an index has room for it, and no
/// address or number is as long.
const LONGEST: usize = 1_024;

/// So many bytes of a digest tell all recipients of an account apart: 128 bits, of which the first
/// two alike are to be expected among some 10^19.
const DIGEST_BYTES: usize = 16;

/// What an opt-out concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Every channel, as after the word STOP.
    All,
    /// One channel.
    Channel(Channel),
}

impl Scope {
    /// The spelling in tables, files and commands.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Channel(channel) => channel.as_str(),
        }
    }

    /// Reads `all` or a channel's name; exact spelling.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text == Self::All.as_str() {
            return Some(Self::All);
        }
        Channel::parse(text).map(Self::Channel)
    }

    /// What is written where nobody says it: an e-mail address is left alone by e-mail, and a
    /// telephone number by every channel.
    #[must_use]
    pub fn suggested_for(recipient: &str) -> Self {
        if recipient.contains('@') {
            Self::Channel(Channel::Email)
        } else {
            Self::All
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a text cannot be a recipient. It never holds the text: error texts reach logs, and
/// recipients must not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RecipientError {
    /// There is nothing in it.
    #[error("expected a recipient, found nothing")]
    Empty,
    /// It is longer than any recipient.
    #[error("expected at most {LONGEST} bytes")]
    Long,
    /// There are control characters in it.
    #[error("expected no control characters")]
    Control,
    /// It must be a telephone number, and is none.
    #[error(transparent)]
    Phone(#[from] PhoneError),
    /// It must be an e-mail address, and is none.
    #[error("expected an e-mail address, such as a@example.org")]
    Email,
    /// For all channels it must be a telephone number or an e-mail address.
    #[error(
        "expected a telephone number of digits, such as +447700900123, or an e-mail address; \
         for an id of one channel name that channel as the scope"
    )]
    Neither,
}

/// The form in which a job's recipient is compared, exactly, with those who have opted out. Numbers
/// are in E.164 form already where jobs are read; capitals make no difference in e-mail addresses;
/// ids of other channels are theirs, and stay as they are.
#[must_use]
pub fn recipient_key(channel: Channel, to: &str) -> Cow<'_, str> {
    let to = to.trim();
    if channel == Channel::Email {
        lower_case(to)
    } else {
        Cow::Borrowed(to)
    }
}

/// The key of a recipient that a person has typed, for an opt-out of that scope. Telephone numbers
/// without a country code are those of `region`.
///
/// # Errors
/// [`RecipientError`], when no job of that scope could have such a recipient.
pub fn typed_recipient_key(
    scope: Scope,
    text: &str,
    region: Option<Region>,
) -> Result<String, RecipientError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(RecipientError::Empty);
    }
    if text.len() > LONGEST {
        return Err(RecipientError::Long);
    }
    if text.chars().any(char::is_control) {
        return Err(RecipientError::Control);
    }
    match scope {
        Scope::Channel(channel) if channel.is_phone() => Ok(normalise_number(text, region)?),
        Scope::Channel(Channel::Email) => email_key(text),
        Scope::Channel(channel) => Ok(recipient_key(channel, text).into_owned()),
        Scope::All if text.contains('@') => email_key(text),
        Scope::All => normalise_number(text, region).map_err(|error| match error {
            PhoneError::Characters => RecipientError::Neither,
            other => RecipientError::Phone(other),
        }),
    }
}

/// What frequency caps know a recipient by: a digest, so that a counter's memory holds no
/// recipients in the clear, of the account's own, so that two accounts' counters cannot be joined.
/// Whoever has the digest can still try numbers until one fits: it is no secret.
///
/// It has 32 hexadecimal digits.
#[must_use]
pub fn recipient_digest(account: &AccountId, key: &str) -> Arc<str> {
    let mut hash = Sha256::new_with_prefix(account.as_str());
    // No account id holds it, so that no two pairs run together alike.
    hash.update([0]);
    hash.update(key);
    hex(&hash.finalize()[..DIGEST_BYTES]).into()
}

fn email_key(text: &str) -> Result<String, RecipientError> {
    let is_address = text.split_once('@').is_some_and(|(local, domain)| {
        !local.is_empty() && !domain.is_empty() && !domain.contains('@')
    });
    if !is_address || text.contains(char::is_whitespace) {
        return Err(RecipientError::Email);
    }
    Ok(lower_case(text).into_owned())
}

/// Most addresses are written in small letters already.
fn lower_case(text: &str) -> Cow<'_, str> {
    let is_lower = |c: char| !c.is_ascii_uppercase() && (c.is_ascii() || c.to_lowercase().eq([c]));
    if text.chars().all(is_lower) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.to_lowercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: Option<&str> = Some("GB");

    fn typed(scope: &str, text: &str, region: Option<&str>) -> Result<String, RecipientError> {
        let region = region.map(|code| Region::parse(code).unwrap());
        typed_recipient_key(Scope::parse(scope).unwrap(), text, region)
    }

    #[test]
    fn jobs_are_compared_in_one_form() {
        let key = |channel, to| recipient_key(channel, to);
        assert_eq!(key(Channel::Sms, "+447700900123"), "+447700900123");
        assert_eq!(
            key(Channel::Email, " Ann.Lee@Example.ORG\n"),
            "ann.lee@example.org"
        );
        assert_eq!(key(Channel::Email, "ÄNN@example.org"), "änn@example.org");
        assert_eq!(key(Channel::Telegram, " aBc "), "aBc");
        let plain = key(Channel::Email, "ann@example.org");
        assert!(matches!(plain, Cow::Borrowed(_)));
    }

    #[test]
    fn what_people_type_has_the_form_in_which_jobs_are_compared() {
        for (scope, text, region, expected) in [
            ("all", "+44 7700 900123", None, "+447700900123"),
            ("all", "07700 900123", GB, "+447700900123"),
            ("sms", "(07700) 900-123", GB, "+447700900123"),
            ("all", " Ann@Example.org ", None, "ann@example.org"),
            ("email", "Ann@Example.org", GB, "ann@example.org"),
            ("telegram", " aBc@7 ", None, "aBc@7"),
            ("push", "Token", None, "Token"),
        ] {
            assert_eq!(
                typed(scope, text, region).as_deref(),
                Ok(expected),
                "{text}"
            );
        }
    }

    #[test]
    fn what_no_job_could_have_as_its_recipient_is_refused() {
        let long = "x".repeat(LONGEST + 1);
        for (scope, text, error) in [
            ("all", "", RecipientError::Empty),
            ("push", " ", RecipientError::Empty),
            ("push", &long, RecipientError::Long),
            ("push", "a\u{7}b", RecipientError::Control),
            ("all", "Ann", RecipientError::Neither),
            ("all", "07700900123", PhoneError::CountryCode.into()),
            ("sms", "ann@example.org", PhoneError::Characters.into()),
            ("sms", "+44123", PhoneError::Length.into()),
            ("all", "@example.org", RecipientError::Email),
            ("all", "ann@", RecipientError::Email),
            ("email", "ann@a@b", RecipientError::Email),
            ("email", "ann lee@example.org", RecipientError::Email),
            ("email", "+447700900123", RecipientError::Email),
        ] {
            assert_eq!(typed(scope, text, None), Err(error), "{scope} {text}");
        }
    }

    #[test]
    fn a_number_that_another_contains_is_another() {
        let key = |text| typed("all", text, None).unwrap();
        assert_ne!(key("+4860060049"), key("+48600600491"));
    }

    #[test]
    fn the_scope_that_nobody_names_follows_from_the_recipient() {
        let suggested = |text| Scope::suggested_for(text);
        assert_eq!(suggested("a@b.org"), Scope::Channel(Channel::Email));
        assert_eq!(suggested("+447700900123"), Scope::All);
    }

    #[test]
    fn digests_tell_accounts_and_recipients_apart() {
        let digest = |account, key| recipient_digest(&AccountId::parse(account).unwrap(), key);
        let one = digest("acme", "+447700900123");
        assert_eq!(one.len(), 32);
        assert_eq!(one, digest("acme", "+447700900123"));
        assert_ne!(one, digest("acme2", "+447700900123"));
        assert_ne!(digest("a", "bc"), digest("ab", "c"));
        assert!(!one.contains("7700900123"));
    }
}
