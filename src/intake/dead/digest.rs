//! By what a dead message is named: it may have no id that could be read.

use std::fmt;

use crate::digest::Digest as Sha256;

/// The SHA-256 of a message's body. Its short form, the first 12 hexadecimal digits, is the
/// message's reference: the same in every run, and for every copy.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(Sha256);

impl Digest {
    /// The fewest digits that may stand for a reference.
    pub const SHORTEST: usize = 6;

    /// The digits of a reference.
    const SHORT: usize = 12;

    /// The digest of a body.
    #[must_use]
    pub fn of(body: &[u8]) -> Self {
        Self(Sha256::of(body))
    }

    /// Whether these are its first digits, and enough of them.
    #[must_use]
    pub fn begins_with(&self, digits: &str) -> bool {
        digits.len() >= Self::SHORTEST && self.in_full().starts_with(&digits.to_ascii_lowercase())
    }

    /// All 64 digits.
    #[must_use]
    pub fn in_full(&self) -> String {
        self.0.to_string()
    }
}

/// The reference.
impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.in_full()[..Self::SHORT])
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_the_beginning_of_the_sha_256() {
        let digest = Digest::of(b"abc");
        assert_eq!(digest.to_string(), "ba7816bf8f01");
        assert_eq!(
            digest.in_full(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn six_digits_or_more_are_enough() {
        let digest = Digest::of(b"abc");
        for digits in ["ba7816", "BA7816BF", "ba7816bf8f01", "ba7816bf8f01cfea"] {
            assert!(digest.begins_with(digits), "{digits}");
        }
        for digits in ["", "ba781", "ba7817", "a7816b"] {
            assert!(!digest.begins_with(digits), "{digits}");
        }
    }
}
