//! Identifiers: who sends (`account_id`) and what is sent (`id`).

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use thiserror::Error;

/// Why a text cannot be an identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("expected 1 to {max} characters of {alphabet}")]
pub struct IdError {
    max: usize,
    alphabet: &'static str,
}

macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident, max $max:literal, alphabet $alphabet:literal, extra $extra:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Reads an identifier.
            ///
            /// # Errors
            /// When the text is empty, too long, or has a character outside the alphabet.
            pub fn parse(text: &str) -> Result<Self, IdError> {
                let permitted = |byte: u8| byte.is_ascii_alphanumeric() || $extra.contains(&byte);
                if text.is_empty() || text.len() > $max || !text.bytes().all(permitted) {
                    return Err(IdError { max: $max, alphabet: $alphabet });
                }
                Ok(Self(Arc::from(text)))
            }

            /// The identifier as it was given.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

identifier!(
    /// A job's id: unique within its account, and the idempotency key to the end of the chain.
    JobId, max 128, alphabet "A-Z a-z 0-9 . _ : -", extra b"._:-"
);

identifier!(
    /// The account that pays for a message and whose budget it draws on.
    AccountId, max 64, alphabet "A-Z a-z 0-9 _ -", extra b"_-"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_keep_to_their_alphabet_and_length() {
        assert!(JobId::parse("a.B_9:-").is_ok());
        assert!(JobId::parse(&"x".repeat(128)).is_ok());
        for bad in ["", "a b", "a/b", "ä", "a\0", &"x".repeat(129)] {
            assert!(JobId::parse(bad).is_err(), "{bad:?}");
        }
        assert!(AccountId::parse(&"x".repeat(64)).is_ok());
        for bad in ["", "a.b", "a:b", &"x".repeat(65)] {
            assert!(AccountId::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_error_says_what_was_expected() {
        let error = AccountId::parse("a.b").unwrap_err().to_string();
        assert_eq!(error, "expected 1 to 64 characters of A-Z a-z 0-9 _ -");
    }
}
