//! What can be paused or cancelled.

use crate::dispatch::ports::Hold;

/// What an operator can pause or cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HoldKind {
    /// An account, with all that it sends.
    Account,
    /// A campaign of an account.
    Campaign,
    /// A journey of an account.
    Journey,
    /// A batch of an account.
    Batch,
}

impl HoldKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Account, Self::Campaign, Self::Journey, Self::Batch];

    /// The spelling in the table and in commands.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Account => "account",
            Self::Campaign => "campaign",
            Self::Journey => "journey",
            Self::Batch => "batch",
        }
    }

    /// Reads a kind's name; exact spelling.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// The spelling of a hold in the table and in commands.
#[must_use]
pub const fn hold_name(hold: Hold) -> &'static str {
    match hold {
        Hold::Paused => "paused",
        Hold::Cancelled => "cancelled",
    }
}

/// Reads a hold's name; exact spelling.
#[must_use]
pub fn parse_hold(text: &str) -> Option<Hold> {
    [Hold::Paused, Hold::Cancelled]
        .into_iter()
        .find(|hold| hold_name(*hold) == text)
}
