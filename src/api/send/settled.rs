//! How a message fares at the desk.

use std::borrow::Cow;
use std::time::Duration;

use jiff::Timestamp;

use super::rate::Rate;
use crate::dispatch::ports::{PublishError, RecordsError, WaitReason};
use crate::domain::{Capped, Limit, Outcome};

/// Whether a message's id was used before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Came {
    /// It is made up for this one request.
    Once,
    /// It is made of a key that is new, as far as anybody remembers.
    First,
    /// It is made of a key that came before: nobody knows what became of that request.
    Again,
}

impl Came {
    /// Whether there may be a message of that id.
    #[must_use]
    pub const fn may_be_known(self) -> bool {
        match self {
            Self::Once => false,
            Self::First | Self::Again => true,
        }
    }
}

/// A message was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// It is in a queue.
    Queued,
    /// It is on its way already, or was sent.
    Before,
    /// It waits in the database.
    Waits {
        /// Why.
        reason: WaitReason,
        /// Until when, where that is known.
        until: Option<Timestamp>,
    },
}

/// A message was not accepted.
#[derive(Debug, Clone, PartialEq)]
pub enum No {
    /// Nobody has configured the account, and such accounts are refused.
    UnknownAccount,
    /// The account is paused.
    AccountPaused,
    /// A gate says never.
    Refused {
        /// How it would have ended.
        outcome: Outcome,
        /// What exactly was wrong.
        detail: Option<Cow<'static, str>>,
        /// When the recipient's next message may pass.
        next_allowed_at: Option<Timestamp>,
    },
    /// A frequency cap is used up.
    Capped {
        /// Which.
        capped: Capped,
        /// How many messages it allows.
        limit: u32,
        /// Within which time.
        window: Duration,
        /// When that was found, by the meter's clock.
        at_ms: u64,
    },
    /// A ceiling is reached.
    Shed {
        /// Which.
        limit: Limit,
        /// How far it goes, in messages per second.
        per_second: u32,
    },
    /// The database gives no answer. Nothing was queued.
    Unrecorded(RecordsError),
    /// The broker took nothing. Nothing was queued.
    NotPublished(PublishError),
    /// The meter gave no answer. Nothing was queued.
    Unmetered,
    /// Nobody has said whether the message is stored.
    Unknown,
}

/// What became of a message, and the lane's ceiling, where it was looked at.
pub type Settled = (Result<Taken, No>, Option<Rate>);

impl No {
    /// What a request is told whose message is in no queue by its own doing. An earlier one with
    /// its key may have queued it all the same.
    #[must_use]
    pub fn unless_it_came_before(self, came: Came) -> Self {
        match came {
            Came::Once | Came::First => self,
            Came::Again => Self::Unknown,
        }
    }

    /// It should wait in the database, and that has not said that it does. Unless the message itself
    /// is the reason, it may have been written down all the same: an answer can get lost after the
    /// end of the transaction.
    #[must_use]
    pub const fn not_kept(error: RecordsError) -> Self {
        match error {
            RecordsError::Unfit => Self::Unrecorded(error),
            RecordsError::Unreachable | RecordsError::TimedOut | RecordsError::Failed => {
                Self::Unknown
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_have_been_written_down_is_unknown() {
        for error in [
            RecordsError::Unreachable,
            RecordsError::TimedOut,
            RecordsError::Failed,
        ] {
            assert_eq!(No::not_kept(error), No::Unknown);
        }
        let unfit = No::not_kept(RecordsError::Unfit);
        assert_eq!(unfit, No::Unrecorded(RecordsError::Unfit));
    }
}
