//! What the ledger was never told, until it has been told that much.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use super::ports::Gap;
use crate::domain::AccountId;

/// Accounts whose gaps are told apart; beyond that those of all others are one.
const ACCOUNTS: usize = 1_000;
/// The least time between two notes: an outage that is over only little by little is few rows.
const PAUSE: Duration = Duration::from_secs(10);
/// How long after a failed note the next is tried.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// Gaps that are not noted yet, one for each account.
#[derive(Debug)]
pub(super) struct Gaps {
    open: HashMap<Option<AccountId>, Gap>,
    /// Before this nothing is noted.
    rests_until: Instant,
}

impl Gaps {
    /// None.
    pub fn new() -> Self {
        Self {
            open: HashMap::new(),
            rests_until: Instant::now(),
        }
    }

    /// Takes in another.
    pub fn add(&mut self, gap: &Gap) {
        let has_room = self.open.len() < ACCOUNTS || self.open.contains_key(&gap.account);
        let account = gap.account.clone().filter(|_| has_room);
        let new = Gap {
            account: account.clone(),
            jobs: 0,
            ..*gap
        };
        let known = self.open.entry(account).or_insert(new);
        known.began_at = known.began_at.min(gap.began_at);
        known.ended_at = known.ended_at.max(gap.ended_at);
        known.jobs += gap.jobs;
    }

    /// When they are to be noted, if there are any.
    pub fn due(&self) -> Option<Instant> {
        (!self.open.is_empty()).then_some(self.rests_until)
    }

    /// All of them, no longer kept here.
    pub fn take(&mut self) -> Vec<Gap> {
        self.rests_until = Instant::now() + PAUSE;
        self.open.drain().map(|(_, gap)| gap).collect()
    }

    /// Keeps what could not be noted.
    pub fn put_back(&mut self, gaps: &[Gap]) {
        for gap in gaps {
            self.add(gap);
        }
        self.rests_until = Instant::now() + TRY_AGAIN;
    }
}
