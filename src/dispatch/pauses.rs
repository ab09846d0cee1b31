//! Whom a carrier has asked to leave it alone, and until when.

use std::collections::HashMap;

use tokio::time::Instant;

use super::in_hand::InHand;
use crate::domain::{AccountId, Lane};

/// Entries up to which nothing is swept.
const SWEEP_ABOVE: usize = 1024;

/// The waits that carriers have asked for and that are too long to be spent in this worker. Each
/// concerns an account's jobs of one lane at one carrier: a campaign that a carrier throttles does
/// not hold up passwords, which find out for themselves.
#[derive(Debug, Default)]
pub(super) struct Pauses(HashMap<(AccountId, Lane, usize), Instant>);

impl Pauses {
    /// Remembers a wait; a longer one that is known already stays.
    pub fn note(&mut self, in_hand: &InHand, until: Instant) {
        let known = self.0.entry(key(in_hand)).or_insert(until);
        *known = (*known).max(until);
    }

    /// Whether a job's carrier wants to be left alone by jobs like it.
    pub fn holds(&self, in_hand: &InHand, now: Instant) -> bool {
        self.until(in_hand, now).is_some()
    }

    /// Until when, if it does.
    pub fn until(&self, in_hand: &InHand, now: Instant) -> Option<Instant> {
        if self.0.is_empty() {
            return None;
        }
        let until = self.0.get(&key(in_hand)).copied();
        until.filter(|until| *until > now)
    }

    /// Forgets waits that are over, once there are many.
    pub fn sweep(&mut self, now: Instant) {
        if self.0.len() > SWEEP_ABOVE {
            self.0.retain(|_, until| *until > now);
        }
    }
}

fn key(in_hand: &InHand) -> (AccountId, Lane, usize) {
    (in_hand.account().clone(), in_hand.lane(), in_hand.carrier)
}

#[cfg(test)]
mod tests {
    use super::super::test_support::{in_hand, instant};
    use super::*;

    #[test]
    fn a_wait_concerns_one_account_and_ends() {
        let mut pauses = Pauses::default();
        let (throttled, other) = (in_hand("a", "1"), in_hand("b", "1"));
        pauses.note(&throttled, instant(5_000));
        pauses.note(&throttled, instant(3_000));
        assert!(pauses.holds(&in_hand("a", "2"), instant(4_999)));
        assert!(!pauses.holds(&other, instant(0)));
        assert!(!pauses.holds(&throttled, instant(5_000)));
    }
}
