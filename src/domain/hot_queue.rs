//! Queues of accounts' own.

use lanekeeper_client::{AccountId, Lane};

/// A queue that one account has to itself in one lane, for as long as it is under pressure.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HotQueue {
    /// The lane.
    pub lane: Lane,
    /// The account.
    pub account: AccountId,
    /// Which of all that there ever were: a number is never given out again, so that whoever is late
    /// in deleting an old queue cannot meet a new one.
    pub number: i64,
}
