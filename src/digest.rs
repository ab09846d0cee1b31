//! The digest by which a file or a message is known again.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// A SHA-256. Displayed in hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Sha256::new_with_prefix(bytes).into()
    }

    /// Its bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// The digest of all that was hashed.
impl From<Sha256> for Digest {
    fn from(hash: Sha256) -> Self {
        Self(hash.finalize().into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

/// Bytes in hexadecimal digits, two for each.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a text does not fail");
        text
    })
}
