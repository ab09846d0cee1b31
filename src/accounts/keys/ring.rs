//! All keys at one moment.

use std::collections::HashMap;

use thiserror::Error;

use super::api_key::{ApiKey, KeyId};
use super::digest::SecretDigest;
use super::scope::KeyScopes;
use crate::domain::{AccountId, Origin};

/// What whoever presents a key may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyGrant {
    /// The key, as logs and people name it.
    pub key: KeyId,
    /// The account on whose behalf, and no other's.
    pub account: AccountId,
    /// What of it.
    pub scopes: KeyScopes,
    /// The origin of what is sent with it.
    pub origin: Origin,
}

/// Why a key is not accepted. Whoever presented it is told the same in each case; the difference is
/// for those who look into logs. None shows more of a key than its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum KeyError {
    /// It has not the form of a key.
    #[error("that is not an API key")]
    Malformed,
    /// There is no key of that id.
    #[error("there is no API key {0}")]
    Unknown(KeyId),
    /// The secret is not that of the key of that id.
    #[error("API key {0}: the secret is wrong")]
    WrongSecret(KeyId),
    /// It was valid once.
    #[error("API key {0} is revoked")]
    Revoked(KeyId),
}

impl KeyError {
    /// A name of the case, from a closed list.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Unknown(_) => "unknown",
            Self::WrongSecret(_) => "wrong_secret",
            Self::Revoked(_) => "revoked",
        }
    }
}

/// A key as it is stored.
#[derive(Debug, Clone)]
pub struct StoredKey {
    /// What it grants.
    pub grant: KeyGrant,
    /// By what its secret is known.
    pub digest: SecretDigest,
    /// Whether it is valid no longer.
    pub is_revoked: bool,
}

impl StoredKey {
    /// A new key, as it is to be stored.
    #[must_use]
    pub fn new(key: &ApiKey, grant: KeyGrant) -> Self {
        Self {
            grant,
            digest: key.digest(),
            is_revoked: false,
        }
    }
}

/// All keys at one moment. Checking one is a look-up in memory.
#[derive(Debug, Default)]
pub struct KeyRing {
    keys: HashMap<KeyId, StoredKey>,
}

impl KeyRing {
    /// Finds what a presented key grants; a header's bytes can be given as they came.
    ///
    /// # Errors
    /// [`KeyError`], when it grants nothing.
    pub fn check(&self, presented: &[u8]) -> Result<&KeyGrant, KeyError> {
        let key = ApiKey::parse(presented)?;
        let id = key.id();
        // That an id exists is no secret, so a look-up may take another time when it does not.
        let stored = self.keys.get(&id).ok_or(KeyError::Unknown(id))?;
        if !stored.digest.matches(&key.digest()) {
            return Err(KeyError::WrongSecret(id));
        }
        if stored.is_revoked {
            return Err(KeyError::Revoked(id));
        }
        Ok(&stored.grant)
    }

    /// Whether a key that was accepted before would be accepted again.
    #[must_use]
    pub fn is_valid(&self, key: KeyId) -> bool {
        self.keys.get(&key).is_some_and(|stored| !stored.is_revoked)
    }

    /// What a key that is valid grants, by its id: for what was let in by it before.
    #[must_use]
    pub fn grant(&self, key: KeyId) -> Option<&KeyGrant> {
        let stored = self.keys.get(&key).filter(|stored| !stored.is_revoked);
        stored.map(|stored| &stored.grant)
    }

    /// How many there are, revoked ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub(super) fn add(&mut self, key: StoredKey) {
        self.keys.insert(key.grant.key, key);
    }
}

impl FromIterator<StoredKey> for KeyRing {
    fn from_iter<I: IntoIterator<Item = StoredKey>>(keys: I) -> Self {
        let keys = keys.into_iter();
        Self {
            keys: keys.map(|key| (key.grant.key, key)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::KeyScope;
    use super::*;

    fn stored(key: &ApiKey, account: &str) -> StoredKey {
        let grant = KeyGrant {
            key: key.id(),
            account: AccountId::parse(account).unwrap(),
            scopes: KeyScopes::from_iter([KeyScope::Send]),
            origin: Origin::Api,
        };
        StoredKey::new(key, grant)
    }

    fn keys() -> [ApiKey; 3] {
        [(); 3].map(|()| ApiKey::generate().unwrap())
    }

    /// The id of one key with the secret of another.
    fn crossed(id: &ApiKey, secret: &ApiKey) -> String {
        let secret = secret.expose();
        let (_, secret) = secret.rsplit_once('_').unwrap();
        format!("lk_{}_{secret}", id.id())
    }

    #[test]
    fn a_key_grants_what_belongs_to_it() {
        let [acme, other, unknown] = keys();
        let ring = KeyRing::from_iter([stored(&acme, "acme"), stored(&other, "other")]);
        let account_of = |key: &ApiKey| {
            let grant = ring.check(key.expose().as_bytes())?;
            Ok(grant.account.to_string())
        };
        assert_eq!(account_of(&acme), Ok("acme".to_owned()));
        assert_eq!(account_of(&other), Ok("other".to_owned()));
        assert_eq!(account_of(&unknown), Err(KeyError::Unknown(unknown.id())));
    }

    #[test]
    fn the_secret_of_another_key_opens_nothing() {
        let [acme, other, unknown] = keys();
        let ring = KeyRing::from_iter([stored(&acme, "acme"), stored(&other, "other")]);
        for secret in [&other, &unknown] {
            let checked = ring.check(crossed(&acme, secret).as_bytes());
            assert_eq!(checked, Err(KeyError::WrongSecret(acme.id())));
        }
    }

    #[test]
    fn that_a_key_was_revoked_is_told_only_to_whoever_has_it() {
        let [acme, other, _] = keys();
        let mut revoked = stored(&acme, "acme");
        revoked.is_revoked = true;
        let ring = KeyRing::from_iter([revoked]);
        let checked = ring.check(acme.expose().as_bytes());
        assert_eq!(checked, Err(KeyError::Revoked(acme.id())));
        let checked = ring.check(crossed(&acme, &other).as_bytes());
        assert_eq!(checked, Err(KeyError::WrongSecret(acme.id())));
    }

    #[test]
    fn no_error_and_no_ring_shows_a_secret_or_its_digest() {
        let [acme, other, unknown] = keys();
        let mut revoked = stored(&other, "other");
        revoked.is_revoked = true;
        let ring = KeyRing::from_iter([stored(&acme, "acme"), revoked]);
        let mut shown = vec![format!("{ring:?}")];
        for presented in [
            unknown.expose(),
            other.expose(),
            crossed(&acme, &other),
            acme.expose() + " ",
        ] {
            let error = ring.check(presented.as_bytes()).unwrap_err();
            shown.push(format!("{error} {error:?} {}", error.as_str()));
        }
        let shown = shown.concat();
        for key in [&acme, &other, &unknown] {
            let exposed = key.expose();
            let (_, secret) = exposed.rsplit_once('_').unwrap();
            let digest = key.digest();
            let bytes = format!("{:?}", digest.as_bytes());
            for hidden in [secret, &crate::digest::hex(digest.as_bytes()), &bytes] {
                assert!(!shown.contains(hidden), "{shown}");
            }
        }
    }
}
