//! Which accounts keep being turned away: they are to get queues of their own.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::domain::{AccountId, Lane};

/// When an account is under pressure in a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PressureOptions {
    /// So many of its jobs over the ceiling and not held...
    pub jobs: u32,
    /// ...within this time.
    pub within: Duration,
}

/// What a worker has found of an account and a lane.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Pressed {
    /// Many of its jobs are over the ceiling, in the queue that it shares with others.
    Shared(Lane, AccountId),
    /// Jobs of its own queue wait for its ceiling.
    Own(Lane, AccountId),
}

/// Fewer jobs than these are no pressure, however many accounts share what may be shed.
const LEAST: u32 = 8;

/// What is shed in less than this says nothing of how much will be.
const SOONEST: Duration = Duration::from_millis(500);

/// Counts one lane's jobs over their ceilings, by account, in windows of time.
///
/// The pace of sheds bounds how many of those can be seen at all. Where many accounts press at once,
/// none of them alone may reach the number that the options set. So once most of what the pace has
/// allowed is used up, half of an even share of it is enough.
#[derive(Debug)]
pub(super) struct Pressure {
    options: PressureOptions,
    sheds_per_second: u32,
    since: Instant,
    total: u32,
    counts: HashMap<AccountId, Count>,
}

#[derive(Debug, Default)]
struct Count {
    jobs: u32,
    told: bool,
}

impl Pressure {
    pub fn new(options: PressureOptions, sheds_per_second: u32, now: Instant) -> Self {
        Self {
            options,
            sheds_per_second,
            since: now,
            total: 0,
            counts: HashMap::new(),
        }
    }

    /// Notes jobs of an account; true when they show, for the first time in this window, that it is
    /// under pressure.
    pub fn note(&mut self, account: AccountId, jobs: u32, now: Instant) -> bool {
        if now.duration_since(self.since) >= self.options.within {
            self.since = now;
            self.total = 0;
            self.counts.clear();
        }
        self.total = self.total.saturating_add(jobs);
        let accounts = u32::try_from(self.counts.len()).unwrap_or(u32::MAX);
        let needed = self.needed(accounts.max(1), now);
        let count = self.counts.entry(account).or_default();
        count.jobs = count.jobs.saturating_add(jobs);
        let pressed = count.jobs >= needed;
        pressed && !std::mem::replace(&mut count.told, true)
    }

    fn needed(&self, accounts: u32, now: Instant) -> u32 {
        let allowed = self.allowed(now);
        let is_scarce = u64::from(self.total) * 5 >= allowed * 4;
        if !is_scarce {
            return self.options.jobs;
        }
        let share = u32::try_from(allowed / u64::from(accounts) / 2).unwrap_or(u32::MAX);
        share.max(LEAST).min(self.options.jobs)
    }

    /// How many jobs the pace has let be shed in this window so far.
    fn allowed(&self, now: Instant) -> u64 {
        let soonest = SOONEST.min(self.options.within);
        let so_far = now.duration_since(self.since).max(soonest);
        let millis = u64::try_from(so_far.as_millis()).unwrap_or(u64::MAX);
        u64::from(self.sheds_per_second).saturating_mul(millis) / 1_000
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_support::instant;
    use super::*;

    fn pressure(sheds_per_second: u32) -> Pressure {
        let options = PressureOptions {
            jobs: 200,
            within: Duration::from_secs(2),
        };
        Pressure::new(options, sheds_per_second, instant(0))
    }

    fn account(name: &str) -> AccountId {
        AccountId::parse(name).unwrap()
    }

    #[test]
    fn many_jobs_within_the_time_are_pressure_and_told_once() {
        let mut pressure = pressure(1_000);
        assert!(!pressure.note(account("a"), 199, instant(0)));
        assert!(!pressure.note(account("b"), 10, instant(500)));
        assert!(pressure.note(account("a"), 1, instant(1_999)));
        assert!(!pressure.note(account("a"), 500, instant(1_999)));
    }

    #[test]
    fn a_new_window_begins_with_nothing() {
        let mut pressure = pressure(1_000);
        assert!(!pressure.note(account("a"), 199, instant(0)));
        assert!(!pressure.note(account("a"), 199, instant(2_000)));
        assert!(pressure.note(account("a"), 1, instant(3_000)));
        assert!(
            pressure.note(account("a"), 200, instant(4_000)),
            "told anew"
        );
    }

    /// With 50 accounts, 1,000 sheds a second are 10 for each in half a second.
    #[test]
    fn many_accounts_that_press_at_once_need_less_each() {
        let mut pressure = pressure(1_000);
        let names: Vec<_> = (0..50).map(|n| account(&format!("a{n}"))).collect();
        let mut told = 0;
        for round in 0..10 {
            for name in &names {
                told += u32::from(pressure.note(name.clone(), 1, instant(round * 50)));
            }
        }
        assert!(told >= 45, "{told}");
        // One that sends a little over its ceiling beside them is left alone.
        assert!(!pressure.note(account("quiet"), 5, instant(500)));
    }

    #[test]
    fn windows_may_be_shorter_than_what_is_told_soonest() {
        let options = PressureOptions {
            jobs: 200,
            within: Duration::from_millis(100),
        };
        let mut pressure = Pressure::new(options, 1_000, instant(0));
        let names: Vec<_> = (0..5).map(|n| account(&format!("a{n}"))).collect();
        let told = names
            .iter()
            .filter(|name| pressure.note((*name).clone(), 20, instant(50)));
        assert_eq!(told.count(), 2, "those after four fifths of the pace");
    }

    /// Bursts of three accounts that can be shed within a third of a second.
    #[test]
    fn short_bursts_of_a_few_accounts_are_no_pressure() {
        let mut pressure = pressure(1_000);
        for name in ["a", "b", "c"] {
            assert!(!pressure.note(account(name), 110, instant(0)), "{name}");
        }
    }
}
