//! The form in which recipients are compared, and who has opted out of what.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use thiserror::Error;

use super::{
    AccountId, AddressError, Channel, PhoneError, Region, normalise_address, normalise_number,
};
use crate::digest::hex;

/// The longest recipient that can be written down, in bytes: an index has room for it, and no
/// address or number is as long.
const LONGEST: usize = lanekeeper_client::MAX_RECIPIENT_BYTES;

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
    #[error(transparent)]
    Email(#[from] AddressError),
    /// For all channels it must be a telephone number or an e-mail address.
    #[error(
        "expected a telephone number of digits, such as +447700900123, or an e-mail address; \
         for an id of one channel say which channel"
    )]
    Neither,
}

/// The form in which a job's recipient is compared, exactly, with those who have opted out. Numbers
/// are in E.164 form already where jobs are read; e-mail addresses have
/// [one spelling](normalise_address); ids of other channels are theirs, and stay as they are.
#[must_use]
pub fn recipient_key(channel: Channel, to: &str) -> Cow<'_, str> {
    let to = to.trim();
    if channel == Channel::Email {
        // A job whose recipient is no address is refused where it is read.
        normalise_address(to).unwrap_or(Cow::Borrowed(to))
    } else {
        Cow::Borrowed(to)
    }
}

/// Whether somebody with this recipient could be written down as opted out: a job that nobody could
/// opt out of must not be sent. Telephone numbers are for [`normalise_number`] to check.
///
/// # Errors
/// [`RecipientError`], when not.
pub fn check_recipient(channel: Channel, to: &str) -> Result<(), RecipientError> {
    let to = sound(to)?;
    if channel == Channel::Email {
        email_key(to)?;
    }
    Ok(())
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
    let text = sound(text)?;
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

/// The text without the blanks around it, if it can be written down at all.
fn sound(text: &str) -> Result<&str, RecipientError> {
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
    Ok(text)
}

/// Its one spelling may be longer than the address.
fn email_key(text: &str) -> Result<String, RecipientError> {
    let key = normalise_address(text)?;
    if key.len() > LONGEST {
        return Err(RecipientError::Long);
    }
    Ok(key.into_owned())
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
            ("all", "@example.org", AddressError.into()),
            ("all", "ann@", AddressError.into()),
            ("email", "ann@a@b", AddressError.into()),
            ("email", "ann lee@example.org", AddressError.into()),
            ("email", "+447700900123", AddressError.into()),
            ("email", "\"Ann\" <ann@example.org>", AddressError.into()),
        ] {
            assert_eq!(typed(scope, text, None), Err(error), "{scope} {text}");
        }
    }

    /// The two doors agree: what may be sent to can opt out, and is then recognised.
    #[test]
    fn whatever_a_job_may_be_addressed_to_can_opt_out() {
        for to in [
            "Ann <ann@exämple.org>",
            "mailto:ann@example.org",
            "ann@example.org.",
            "ANN@exa\u{308}mple.org",
            "ann@xn--exmple-cua.org",
            "a@x.org, ann@exämple.org",
            "ann@exämple.org\u{200b}",
            &"x@y.org".repeat(200),
            " ann@exämple.org ",
        ] {
            let typed = typed("email", to, None);
            assert_eq!(
                check_recipient(Channel::Email, to).err(),
                typed.as_ref().err().copied()
            );
            if let Ok(typed) = typed {
                assert_eq!(recipient_key(Channel::Email, to), typed, "{to}");
            }
        }
        for to in ["", " ", "a\nb", &"x".repeat(LONGEST + 1)] {
            let error = typed("push", to, None).unwrap_err();
            assert_eq!(check_recipient(Channel::Push, to), Err(error));
        }
        assert_eq!(check_recipient(Channel::Push, &"x".repeat(LONGEST)), Ok(()));
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
