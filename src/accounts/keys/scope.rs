//! What a key allows.

use std::fmt;

/// One thing that a key may allow. None includes another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyScope {
    /// To send messages.
    Send,
    /// To see what became of messages, and what would become of them.
    Read,
    /// To change what is laid down for the account: opt-outs, caps, pauses.
    Admin,
}

impl KeyScope {
    /// Every scope.
    pub const ALL: [Self; 3] = [Self::Send, Self::Read, Self::Admin];

    /// The spelling in the table and in commands.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Read => "read",
            Self::Admin => "admin",
        }
    }

    /// Reads a scope; exact spelling.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text)
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// What a key allows, all in all. Displayed as `send,read`.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct KeyScopes(u8);

impl KeyScopes {
    /// Whether this is among it.
    #[must_use]
    pub const fn allow(self, scope: KeyScope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// All that is among it, in the order of [`KeyScope::ALL`].
    pub fn iter(self) -> impl Iterator<Item = KeyScope> {
        let all = KeyScope::ALL.into_iter();
        all.filter(move |scope| self.allow(*scope))
    }

    /// The spelling of each.
    #[must_use]
    pub fn names(self) -> Vec<&'static str> {
        self.iter().map(KeyScope::as_str).collect()
    }
}

impl FromIterator<KeyScope> for KeyScopes {
    fn from_iter<I: IntoIterator<Item = KeyScope>>(scopes: I) -> Self {
        let scopes = scopes.into_iter();
        Self(scopes.fold(0, |bits, scope| bits | scope.bit()))
    }
}

impl fmt::Display for KeyScopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().join(","))
    }
}

impl fmt::Debug for KeyScopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_allows_what_it_was_given_and_nothing_else() {
        for given in KeyScope::ALL {
            let scopes = KeyScopes::from_iter([given]);
            for asked in KeyScope::ALL {
                assert_eq!(scopes.allow(asked), asked == given);
            }
            assert!(!KeyScopes::default().allow(given));
            assert!(KeyScopes::from_iter(KeyScope::ALL).allow(given));
        }
    }

    #[test]
    fn scopes_have_one_spelling_each() {
        for scope in KeyScope::ALL {
            assert_eq!(KeyScope::parse(scope.as_str()), Some(scope));
        }
        assert_eq!(KeyScope::parse("Send"), None);
        let both = KeyScopes::from_iter([KeyScope::Read, KeyScope::Send, KeyScope::Read]);
        assert_eq!(both.to_string(), "send,read");
    }
}
