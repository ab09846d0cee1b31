//! What is stored of a secret.

use std::fmt;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// The SHA-256 of a key's secret. Without salt and without a slow hash: those make it dear to try
/// likely secrets one by one, and no secret here is likelier than another. Each is 200 random bits,
/// more than anybody can try, so a fast hash keeps it as well, and costs a request nothing.
///
/// It has no `==`, which would stop at the first difference: how long that takes would tell somebody
/// who tries keys how near they came. Its `Debug` shows nothing.
#[derive(Clone)]
pub struct SecretDigest([u8; Self::LEN]);

impl SecretDigest {
    /// Bytes of a digest.
    pub const LEN: usize = 32;

    pub(super) fn of(secret: &[u8]) -> Self {
        Self(Sha256::digest(secret).into())
    }

    /// A digest as it is stored; `None` for anything of another length.
    #[must_use]
    pub fn from_stored(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// The bytes to be stored.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }

    /// Whether both are of the same secret. Takes as long wherever they differ.
    #[must_use]
    pub fn matches(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Debug for SecretDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;

    #[test]
    fn it_is_the_sha_256_of_the_secret_alone() {
        let digest = SecretDigest::of(b"secret");
        let hex = crate::digest::hex(digest.as_bytes());
        assert_eq!(hex, Digest::of(b"secret").to_string());
    }

    #[test]
    fn a_difference_in_any_bit_counts() {
        let digest = SecretDigest::of(b"secret");
        let stored = SecretDigest::from_stored(digest.as_bytes()).unwrap();
        assert!(digest.matches(&stored));
        for bit in 0..SecretDigest::LEN * 8 {
            let mut bytes = *digest.as_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(!digest.matches(&SecretDigest(bytes)), "{bit}");
        }
    }

    #[test]
    fn a_digest_of_another_length_is_none() {
        for length in [0, 20, 31, 33, 64] {
            assert!(SecretDigest::from_stored(&vec![0; length]).is_none());
        }
    }
}
