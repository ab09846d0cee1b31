//! What this process counts within the current second.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::second::{Count, Second};
use crate::domain::{AccountId, Lane};

/// The jobs of one account and lane that this process holds and has not sent.
#[derive(Debug, Clone)]
pub struct InHandNow {
    /// Whose.
    pub account: AccountId,
    /// In which lane.
    pub lane: Lane,
    /// How many.
    pub jobs: u32,
    /// How long ago the oldest of them was queued.
    pub oldest: Duration,
}

/// The handle through which the parts of a process count; clones count together.
#[derive(Debug, Clone, Default)]
pub struct Tally(Option<Arc<Mutex<Page>>>);

impl Tally {
    /// Accounts that are counted within one second and process; others are left out of it.
    pub const ACCOUNTS: usize = 1_024;

    /// A tally that counts nothing.
    #[must_use]
    pub const fn off() -> Self {
        Self(None)
    }

    /// A tally that counts.
    #[must_use]
    pub fn counting() -> Self {
        Self(Some(Arc::default()))
    }

    /// The current second, to count several things at once; `None` where nothing is counted. It must
    /// not be kept.
    #[must_use]
    pub fn page(&self) -> Option<MutexGuard<'_, Page>> {
        let page = self.0.as_ref()?;
        Some(page.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// So many of something have happened.
    pub fn add(&self, account: &AccountId, lane: Lane, what: Count, count: u32) {
        if let Some(second) = self.page().as_mut().and_then(|page| page.of(account)) {
            second.lane_mut(lane).add(what, count);
        }
    }

    /// What this process holds now, of all accounts; it holds nothing of others.
    pub fn in_hand(&self, jobs: Vec<InHandNow>) {
        if let Some(mut page) = self.page() {
            page.in_hand = jobs;
        }
    }

    /// Ends the second: gives what was counted in it, and begins the next.
    #[must_use]
    pub fn turn(&self) -> Vec<(AccountId, Second)> {
        self.page().map(|mut page| page.turn()).unwrap_or_default()
    }
}

/// The current second.
#[derive(Debug, Default)]
pub struct Page {
    entries: Vec<(AccountId, Second)>,
    places: HashMap<AccountId, usize>,
    /// Place of the account that was counted last: its next job most likely follows at once.
    last: usize,
    in_hand: Vec<InHandNow>,
}

impl Page {
    /// An account's second; `None` when there are too many accounts.
    pub fn of(&mut self, account: &AccountId) -> Option<&mut Second> {
        let is_last = |(last, _): &(AccountId, Second)| last == account;
        if !self.entries.get(self.last).is_some_and(is_last) {
            self.last = self.place(account)?;
        }
        self.entries.get_mut(self.last).map(|(_, second)| second)
    }

    fn place(&mut self, account: &AccountId) -> Option<usize> {
        if let Some(place) = self.places.get(account) {
            return Some(*place);
        }
        let place = self.entries.len();
        if place >= Tally::ACCOUNTS {
            return None;
        }
        self.entries.push((account.clone(), Second::default()));
        self.places.insert(account.clone(), place);
        Some(place)
    }

    fn turn(&mut self) -> Vec<(AccountId, Second)> {
        let held = std::mem::take(&mut self.in_hand);
        for now in &held {
            if let Some(second) = self.of(&now.account) {
                second.lane_mut(now.lane).hold(now.jobs, now.oldest);
            }
        }
        self.in_hand = held;
        self.places.clear();
        self.last = 0;
        std::mem::take(&mut self.entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(name: &str) -> AccountId {
        AccountId::parse(name).unwrap()
    }

    #[test]
    fn a_second_holds_what_was_counted_since_the_one_before() {
        let tally = Tally::counting();
        let (one, other) = (account("one"), account("other"));
        for _ in 0..3 {
            tally.add(&one, Lane::Marketing, Count::Refused, 1);
            tally.add(&other, Lane::Marketing, Count::Expired, 2);
        }
        let turned = tally.turn();
        let lanes: Vec<_> = turned
            .iter()
            .map(|(account, second)| (account, second.lane(Lane::Marketing)))
            .map(|(account, lane)| (account, lane.get(Count::Refused), lane.get(Count::Expired)))
            .collect();
        assert_eq!(lanes, [(&one, 3, 0), (&other, 0, 6)]);
        assert!(tally.turn().is_empty());
    }

    #[test]
    fn what_is_in_hand_is_said_each_second_until_it_is_not() {
        let tally = Tally::counting();
        let held = InHandNow {
            account: account("a"),
            lane: Lane::Transactional,
            jobs: 4,
            oldest: Duration::from_secs(2),
        };
        tally.in_hand(vec![held]);
        for _ in 0..2 {
            let turned = tally.turn();
            let lane = turned[0].1.lane(Lane::Transactional);
            assert_eq!(lane.in_workers(), 4);
        }
        tally.in_hand(Vec::new());
        assert!(tally.turn().is_empty());
    }

    #[test]
    fn there_is_a_bound_to_the_accounts_of_a_second() {
        let tally = Tally::counting();
        for number in 0..Tally::ACCOUNTS * 2 {
            let account = account(&format!("a{number}"));
            tally.add(&account, Lane::Marketing, Count::Refused, 1);
        }
        assert_eq!(tally.turn().len(), Tally::ACCOUNTS);
    }

    #[test]
    fn one_that_is_off_counts_nothing() {
        let tally = Tally::off();
        tally.add(&account("a"), Lane::Marketing, Count::Refused, 1);
        assert!(tally.page().is_none() && tally.turn().is_empty());
    }
}
