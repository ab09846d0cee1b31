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
const LEAST: u32 = 20;

/// Counts one lane's jobs over their ceilings, by account, in windows of time.
///
/// The pace of sheds bounds how many of those can be seen at all. Where many accounts press at once,
/// none of them alone may reach the number that the options set: then half of an even share is
/// enough.
#[derive(Debug)]
pub(super) struct Pressure {
    options: PressureOptions,
    /// How many jobs may be shed within one window.
    capacity: u32,
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
        let window_ms = u32::try_from(options.within.as_millis()).unwrap_or(u32::MAX);
        let capacity = u64::from(sheds_per_second) * u64::from(window_ms) / 1_000;
        Self {
            options,
            capacity: u32::try_from(capacity).unwrap_or(u32::MAX),
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
        let needed = self.needed(accounts.max(1));
        let count = self.counts.entry(account).or_default();
        count.jobs = count.jobs.saturating_add(jobs);
        let pressed = count.jobs >= needed;
        pressed && !std::mem::replace(&mut count.told, true)
    }

    fn needed(&self, accounts: u32) -> u32 {
        let is_scarce = u64::from(self.total) * 5 >= u64::from(self.capacity) * 4;
        if is_scarce {
            let share = self.capacity / accounts / 2;
            share.max(LEAST).min(self.options.jobs)
        } else {
            self.options.jobs
        }
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

    /// With 50 accounts, 1,000 sheds a second are 40 for each in two seconds.
    #[test]
    fn many_accounts_that_press_at_once_need_less_each() {
        let mut pressure = pressure(1_000);
        let names: Vec<_> = (0..50).map(|n| account(&format!("a{n}"))).collect();
        let mut told = 0;
        for round in 0..40 {
            for name in &names {
                told += u32::from(pressure.note(name.clone(), 1, instant(round * 50)));
            }
        }
        assert!(told >= 45, "{told}");
        // One that sends a little over its ceiling beside them is left alone.
        assert!(!pressure.note(account("quiet"), 5, instant(1_999)));
    }
}
