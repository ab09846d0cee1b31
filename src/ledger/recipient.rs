//! The form in which the ledger keeps recipients.

use sha2::{Digest as _, Sha256};

use crate::digest::hex;
use crate::domain::AccountId;
use crate::settings::{Ledger, LedgerRecipient};

/// Bytes of a digest that are kept: enough that no two recipients ever share one.
const DIGEST_BYTES: usize = 16;

/// What of a recipient the ledger keeps.
#[derive(Clone)]
pub enum RecipientForm {
    /// A digest, by which the rows of a known recipient can be found: the first 16 bytes, in
    /// hexadecimal digits, of the SHA-256 over the key, the account and the recipient. Without the
    /// key it could be found by trying all numbers.
    Hashed {
        /// The key; empty: none.
        key: Box<[u8]>,
    },
    /// The last characters, for people: four of ten or more, three of seven to nine, else none.
    Masked,
    /// Nothing.
    Absent,
}

impl RecipientForm {
    /// The form that the settings name.
    #[must_use]
    pub fn of(settings: &Ledger) -> Self {
        match settings.recipient {
            LedgerRecipient::Hash => {
                let key = settings.hash_key.as_ref();
                let key = key.map_or(&b""[..], |key| key.expose().as_bytes());
                Self::Hashed { key: key.into() }
            }
            LedgerRecipient::Mask => Self::Masked,
            LedgerRecipient::None => Self::Absent,
        }
    }

    /// What is kept of a recipient.
    #[must_use]
    pub fn keep(&self, account: &AccountId, recipient: &str) -> Option<String> {
        match self {
            Self::Hashed { key } => Some(hashed(key, account, recipient)),
            Self::Masked => Some(masked(recipient)),
            Self::Absent => None,
        }
    }
}

/// Without the key: a log line must not show it.
impl std::fmt::Debug for RecipientForm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Hashed { .. } => "Hashed",
            Self::Masked => "Masked",
            Self::Absent => "Absent",
        })
    }
}

/// Each part is ended by a NUL, which no account and no recipient contains.
fn hashed(key: &[u8], account: &AccountId, recipient: &str) -> String {
    let mut hash = Sha256::new();
    for part in [key, account.as_str().as_bytes(), recipient.as_bytes()] {
        hash.update(part);
        hash.update([0]);
    }
    hex(&hash.finalize()[..DIGEST_BYTES])
}

fn masked(recipient: &str) -> String {
    let characters = recipient.chars().count();
    let shown = match characters {
        10.. => 4,
        7..10 => 3,
        _ => 0,
    };
    let shown = recipient.chars().skip(characters - shown);
    "***".chars().chain(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(id: &str) -> AccountId {
        AccountId::parse(id).unwrap()
    }

    #[test]
    fn a_digest_depends_on_key_account_and_recipient_and_on_nothing_else() {
        let of = |key: &str, id, recipient| {
            let key = key.as_bytes().into();
            let form = RecipientForm::Hashed { key };
            form.keep(&account(id), recipient).unwrap()
        };
        let one = of("key", "acme", "+447700900123");
        assert_eq!(one, of("key", "acme", "+447700900123"));
        assert_eq!(one.len(), 32);
        for other in [
            of("", "acme", "+447700900123"),
            of("key", "acm", "e+447700900123"),
            of("keya", "cme", "+447700900123"),
            of("key", "other", "+447700900123"),
            of("key", "acme", "+447700900124"),
        ] {
            assert_ne!(one, other);
        }
    }

    #[test]
    fn a_mask_shows_the_last_characters_of_what_is_long_enough() {
        let of = |recipient| {
            RecipientForm::Masked
                .keep(&account("acme"), recipient)
                .unwrap()
        };
        assert_eq!(of("+447700900123"), "***0123");
        assert_eq!(of("1234567"), "***567");
        assert_eq!(of("a@b.cd"), "***");
        assert_eq!(of("jörg.müllör"), "***llör");
        assert_eq!(of(""), "***");
    }

    #[test]
    fn nothing_is_nothing() {
        assert_eq!(
            RecipientForm::Absent.keep(&account("acme"), "+447700900123"),
            None
        );
    }

    #[test]
    fn the_key_is_not_shown() {
        let key = b"secret".as_slice().into();
        assert_eq!(format!("{:?}", RecipientForm::Hashed { key }), "Hashed");
    }
}
