//! Which ceilings are known to be reached, so that nobody is asked what is known.

use std::collections::HashMap;

use tokio::time::Instant;

use crate::domain::{AccountId, Lane, MeterMode};

/// A ceiling that is reached until its window ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reached {
    pub until: Instant,
    /// Whose counter said so.
    pub mode: MeterMode,
}

/// Accounts whose ceilings are reached. Once a counter has reached a ceiling, that stays true
/// until its window ends, because a counter only grows.
#[derive(Debug, Default)]
pub(super) struct ReachedCeilings([HashMap<AccountId, Reached>; 2]);

/// Entries up to which nothing is swept.
const SWEEP_ABOVE: usize = 1024;

impl ReachedCeilings {
    /// Remembers that a lane's ceiling is reached.
    pub fn note(&mut self, lane: Lane, account: &AccountId, reached: Reached) {
        self.0[lane.index()].insert(account.clone(), reached);
    }

    /// Whether a lane's ceiling is known to be reached now.
    pub fn get(&self, lane: Lane, account: &AccountId, now: Instant) -> Option<Reached> {
        self.0[lane.index()]
            .get(account)
            .copied()
            .filter(|reached| reached.until > now)
    }

    /// Forgets windows that have ended, once there are many.
    pub fn sweep(&mut self, now: Instant) {
        for lane in &mut self.0 {
            if lane.len() > SWEEP_ABOVE {
                lane.retain(|_, reached| reached.until > now);
            }
        }
    }
}
