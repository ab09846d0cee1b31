//! Sender numbers and messaging services: ceilings below the account's, counted in this process.

use tokio::time::Instant;

use super::expiring::Expiring;
use super::local::{WINDOW, Window};
use crate::dispatch::ports::{JobRequest, TargetCeiling};
use crate::domain::{AccountId, Limit};

/// The ceilings of a job's number and service, in the order in which they are checked, each with
/// the limit that it sheds by.
pub(super) fn targets(job: &JobRequest) -> impl Iterator<Item = (Limit, &TargetCeiling)> {
    let number = job.number.iter().map(|target| (Limit::Number, target));
    let service = job.service.iter().map(|target| (Limit::Service, target));
    number.chain(service)
}

type Key = (AccountId, Limit, Box<str>);

/// One window for each number and service that is in use.
#[derive(Debug)]
pub(super) struct Targets {
    windows: Expiring<Key, Window>,
}

impl Targets {
    /// At most `bound` windows.
    pub(super) fn new(bound: usize) -> Self {
        Self {
            windows: Expiring::new(bound),
        }
    }

    /// The first of a job's ceilings below the account's that is reached, if one is.
    pub(super) fn reached(
        &self,
        account: &AccountId,
        job: &JobRequest,
        now: Instant,
    ) -> Option<Limit> {
        let is_reached =
            |one: &(Limit, &TargetCeiling)| self.counted(account, *one, now) >= one.1.per_second;
        targets(job).find(is_reached).map(|(limit, _)| limit)
    }

    /// What a number or service has sent in its current window.
    pub(super) fn counted(
        &self,
        account: &AccountId,
        (limit, target): (Limit, &TargetCeiling),
        now: Instant,
    ) -> u32 {
        let window = self.windows.get(&key(account, limit, target), now);
        window.map_or(0, |window| window.counter(now).count)
    }

    /// Counts a job that passes.
    pub(super) fn add(&mut self, account: &AccountId, job: &JobRequest, now: Instant) {
        for (limit, target) in targets(job) {
            let key = key(account, limit, target);
            if let Some(window) = self.windows.get_mut(&key, now) {
                window.add(1, now);
            } else {
                let mut window = Window::default();
                window.add(1, now);
                self.windows.put(key, window, now + WINDOW, now);
            }
        }
    }
}

fn key(account: &AccountId, limit: Limit, target: &TargetCeiling) -> Key {
    (account.clone(), limit, target.target.clone())
}
