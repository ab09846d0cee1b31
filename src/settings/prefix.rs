//! The first part of names in a shared service.

use std::fmt;

/// A prefix that keeps installations in one broker or one Redis apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix(Box<str>);

impl Prefix {
    /// Reads a prefix of 1 to 64 letters, digits and `extra` characters.
    ///
    /// # Errors
    /// What was expected.
    pub fn parse(text: &str, extra: &str) -> Result<Self, String> {
        let permitted = |c: char| c.is_ascii_alphanumeric() || extra.contains(c);
        if (1..=64).contains(&text.len()) && text.chars().all(permitted) {
            return Ok(Self(text.into()));
        }
        let spaced: Vec<String> = extra.chars().map(String::from).collect();
        Err(format!(
            "1 to 64 characters of A-Z a-z 0-9 {}",
            spaced.join(" ")
        ))
    }

    /// The prefix.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
