//! The form of a key.

use std::fmt;

use thiserror::Error;

use super::digest::SecretDigest;
use super::ring::KeyError;

/// What every key begins with, so that people and scanners for leaked secrets know one when they see
/// it.
const PREFIX: &[u8] = b"lk_";

/// What stands between id and secret.
const SEPARATOR: u8 = b'_';

/// The lower-case alphabet of base 32 (RFC 4648): safe in URLs, headers and shells, chosen as one
/// word by a double click, and without digits that look like letters. A byte chooses one of 32 evenly.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Characters of an id: 60 bits, so that no two of a million keys are likely to share one.
const ID_LEN: usize = 12;

/// Characters of a secret: 200 bits.
const SECRET_LEN: usize = 40;

/// Random bytes that make up a key, one for each character.
const RANDOM_LEN: usize = ID_LEN + SECRET_LEN;

/// The public part of a key: 12 characters of `a-z` and `2-7`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId([u8; ID_LEN]);

impl KeyId {
    /// Reads an id; exact spelling.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        characters(text).map(Self)
    }

    /// Its characters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        text(&self.0)
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The operating system gave no random bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the operating system gives no random bytes: {0}")]
pub struct NoRandomness(getrandom::Error);

/// A whole key, its secret included. It cannot be displayed, and its `Debug` leaves the secret out:
/// only [`ApiKey::expose`] gives that away. Two keys cannot be compared by `==`, which would stop at
/// the first difference: [`SecretDigest::matches`] does not.
#[derive(Clone)]
pub struct ApiKey {
    id: KeyId,
    secret: [u8; SECRET_LEN],
}

impl ApiKey {
    /// A new key that nobody can guess.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub fn generate() -> Result<Self, NoRandomness> {
        let mut random = [0; RANDOM_LEN];
        getrandom::fill(&mut random).map_err(NoRandomness)?;
        Ok(Self::of_random(random))
    }

    fn of_random(random: [u8; RANDOM_LEN]) -> Self {
        let characters = random.map(|byte| ALPHABET[usize::from(byte) % ALPHABET.len()]);
        let (mut id, mut secret) = ([0; ID_LEN], [0; SECRET_LEN]);
        id.copy_from_slice(&characters[..ID_LEN]);
        secret.copy_from_slice(&characters[ID_LEN..]);
        let id = KeyId(id);
        Self { id, secret }
    }

    /// Reads a key as somebody presents it, a header's bytes for instance; exact spelling.
    ///
    /// # Errors
    /// [`KeyError::Malformed`], when it has not the form of a key.
    pub fn parse(presented: &[u8]) -> Result<Self, KeyError> {
        let parts = || {
            let rest = presented.strip_prefix(PREFIX)?;
            let (id, rest) = rest.split_at_checked(ID_LEN)?;
            let (separator, secret) = rest.split_first()?;
            (*separator == SEPARATOR).then_some(())?;
            Some(Self {
                id: KeyId::parse(id)?,
                secret: characters(secret)?,
            })
        };
        parts().ok_or(KeyError::Malformed)
    }

    /// The public part.
    #[must_use]
    pub const fn id(&self) -> KeyId {
        self.id
    }

    /// What is stored of the secret.
    #[must_use]
    pub fn digest(&self) -> SecretDigest {
        SecretDigest::of(&self.secret)
    }

    /// The whole key, for the one time that it is shown.
    #[must_use]
    pub fn expose(&self) -> String {
        format!("lk_{}_{}", self.id, text(&self.secret))
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lk_{}_***", self.id)
    }
}

/// So many characters of the alphabet, no more and no fewer.
fn characters<const LEN: usize>(text: &[u8]) -> Option<[u8; LEN]> {
    let all = text.iter().all(|byte| ALPHABET.contains(byte));
    text.try_into().ok().filter(|_| all)
}

fn text(characters: &[u8]) -> &str {
    str::from_utf8(characters).expect("the alphabet is ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "lk_abcdefgh2345_abcdefghijklmnopqrstuvwxyz234567abcdefgh";

    fn secret_of(key: &str) -> &str {
        key.rsplit('_').next().unwrap()
    }

    #[test]
    fn a_key_is_read_as_it_is_shown() {
        let key = ApiKey::parse(KEY.as_bytes()).unwrap();
        assert_eq!(key.expose(), KEY);
        assert_eq!(key.id().to_string(), "abcdefgh2345");
        let generated = ApiKey::generate().unwrap();
        let again = ApiKey::parse(generated.expose().as_bytes()).unwrap();
        assert_eq!(again.expose(), generated.expose());
    }

    /// `\blk_[a-z2-7]{12}_[a-z2-7]{40}\b` finds every key, as the documentation says.
    #[test]
    fn every_key_has_one_fixed_shape_and_at_least_160_random_bits() {
        const BITS_PER_CHARACTER: usize = ALPHABET.len().ilog2() as usize;
        const { assert!(SECRET_LEN * BITS_PER_CHARACTER >= 160) };
        for seed in 0..=u8::MAX {
            let key = ApiKey::of_random([seed; RANDOM_LEN]).expose();
            let parts: Vec<_> = key.split('_').collect();
            assert_eq!(
                parts.iter().map(|it| it.len()).collect::<Vec<_>>(),
                [2, 12, 40]
            );
            let is_of_alphabet = |c: char| matches!(c, 'a'..='z' | '2'..='7');
            assert!(
                parts[1..]
                    .iter()
                    .all(|part| part.chars().all(is_of_alphabet))
            );
        }
    }

    #[test]
    fn each_character_is_as_likely_as_any_other() {
        let mut counts = [0; 256];
        for byte in 0..=u8::MAX {
            let key = ApiKey::of_random([byte; RANDOM_LEN]);
            counts[usize::from(key.secret[0])] += 1;
        }
        assert!(ALPHABET.iter().all(|&it| counts[usize::from(it)] == 8));
    }

    #[test]
    fn no_part_of_a_key_repeats_in_another() {
        let keys: Vec<_> = (0..200).map(|_| ApiKey::generate().unwrap()).collect();
        for (place, one) in keys.iter().enumerate() {
            for other in &keys[..place] {
                assert_ne!(one.id(), other.id());
                assert_ne!(one.secret[..8], other.secret[..8]);
                assert_ne!(one.secret[32..], other.secret[32..]);
            }
        }
    }

    #[test]
    fn what_is_not_exactly_a_key_is_none() {
        let secret = secret_of(KEY);
        for text in [
            String::new(),
            "lk_".to_owned(),
            "lk_abcdefgh2345".to_owned(),
            "lk_abcdefgh2345_".to_owned(),
            KEY[1..].to_owned(),
            KEY[..KEY.len() - 1].to_owned(),
            format!("{KEY}a"),
            format!(" {KEY}"),
            format!("{KEY}\n"),
            format!("{KEY}\0"),
            KEY.to_uppercase(),
            KEY.replacen("lk_", "LK_", 1),
            format!("lk-abcdefgh2345_{secret}"),
            format!("lk_abcdefgh2345-{secret}"),
            format!("lk_abcdefgh234_5{secret}"),
            format!("lk_abcdefgh2341_{secret}"),
            format!("lk_abcdefgh234é_{secret}"),
            format!("sk_abcdefgh2345_{secret}"),
            format!("lk_abcdefgh2345_{}!", &secret[1..]),
        ] {
            let error = ApiKey::parse(text.as_bytes()).unwrap_err();
            assert_eq!(error, KeyError::Malformed, "{text}");
        }
        assert!(ApiKey::parse(&[0xff; 56]).is_err());
    }

    #[test]
    fn nothing_that_is_printed_shows_the_secret() {
        let key = ApiKey::parse(KEY.as_bytes()).unwrap();
        assert_eq!(format!("{key:?}"), "lk_abcdefgh2345_***");
        assert_eq!(format!("{key:#?}"), "lk_abcdefgh2345_***");
        assert_eq!(format!("{:?}", key.digest()), "***");
    }
}
