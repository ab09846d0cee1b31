//! Ids of messages, and the `Idempotency-Key` that some are derived from.

use axum::http::{HeaderMap, HeaderName};
use sha2::{Digest as _, Sha256};

use crate::api::error::{ApiError, ApiResult};
use crate::digest::hex;
use crate::domain::{AccountId, JobId};

/// The header's name.
pub(super) static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The longest key, in characters.
const LONGEST: usize = 255;

/// Bytes of an id: 128 bits, so that no two of them are the same.
const ID_BYTES: usize = 16;

/// What a client calls a request by, so that it can send it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey(Box<str>);

impl IdempotencyKey {
    /// The request's key, if it has one.
    ///
    /// # Errors
    /// When there are several, or it is not 1 to 255 visible ASCII characters.
    pub fn of(headers: &HeaderMap) -> ApiResult<Option<Self>> {
        let mut given = headers.get_all(&IDEMPOTENCY_KEY).iter();
        let Some(key) = given.next() else {
            return Ok(None);
        };
        let key = key.as_bytes();
        let is_sound = (1..=LONGEST).contains(&key.len()) && key.iter().all(u8::is_ascii_graphic);
        match str::from_utf8(key) {
            Ok(key) if is_sound && given.next().is_none() => Ok(Some(Self(key.into()))),
            _ => {
                let expected = format!("expected one, of 1 to {LONGEST} visible ASCII characters");
                Err(ApiError::validation("Idempotency-Key", None, expected))
            }
        }
    }
}

/// The id of the message that this key stands for. It depends on account, endpoint and key alone:
/// the same request makes the same message, whichever server gets it.
#[must_use]
pub fn derived_id(account: &AccountId, endpoint: &str, key: &IdempotencyKey) -> JobId {
    let mut hash = Sha256::new();
    for part in [account.as_str(), endpoint, &key.0] {
        // With their lengths, so that no two triples read the same.
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    message_id(&hash.finalize()[..ID_BYTES])
}

/// An id that nobody has had.
///
/// # Errors
/// When the operating system gives no random bytes.
pub fn random_id() -> ApiResult<JobId> {
    let mut bytes = [0; ID_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| {
        tracing::error!(%error, "the operating system gives no random bytes");
        ApiError::unavailable("no id can be made: try again")
    })?;
    Ok(message_id(&bytes))
}

fn message_id(bytes: &[u8]) -> JobId {
    let id = format!("msg_{}", hex(bytes));
    JobId::parse(&id).expect("letters, digits and an underscore make a job's id")
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn key(text: &str) -> IdempotencyKey {
        IdempotencyKey(text.into())
    }

    fn read(values: &[&[u8]]) -> ApiResult<Option<IdempotencyKey>> {
        let mut headers = HeaderMap::new();
        for value in values {
            let value = HeaderValue::from_bytes(value).unwrap();
            headers.append(&IDEMPOTENCY_KEY, value);
        }
        IdempotencyKey::of(&headers)
    }

    #[test]
    fn an_id_is_msg_and_32_hexadecimal_digits() {
        let account = AccountId::parse("acme").unwrap();
        for id in [
            random_id().unwrap(),
            derived_id(&account, "/sms", &key("k")),
        ] {
            let digits = id.as_str().strip_prefix("msg_").unwrap();
            assert_eq!(digits.len(), 32);
            assert!(digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        }
        assert_ne!(random_id().unwrap(), random_id().unwrap());
    }

    #[test]
    fn account_endpoint_and_key_all_count() {
        let account = |id| AccountId::parse(id).unwrap();
        let base = derived_id(&account("a"), "sms", &key("k"));
        assert_eq!(base, derived_id(&account("a"), "sms", &key("k")));
        for other in [
            derived_id(&account("b"), "sms", &key("k")),
            derived_id(&account("a"), "whatsapp", &key("k")),
            derived_id(&account("a"), "sms", &key("K")),
            derived_id(&account("as"), "ms", &key("k")),
            derived_id(&account("a"), "smsk", &key("")),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn a_key_is_one_short_visible_word() {
        assert_eq!(read(&[]).unwrap(), None);
        assert_eq!(read(&[b"order-17/otp"]).unwrap(), Some(key("order-17/otp")));
        assert!(read(&[&[b'k'; LONGEST]]).is_ok());
        let longer = [b'k'; LONGEST + 1];
        for bad in [&b""[..], b"two words", "schl\u{fc}ssel".as_bytes(), &longer] {
            assert!(read(&[bad]).is_err());
        }
        assert!(read(&[b"a", b"a"]).is_err());
    }
}
