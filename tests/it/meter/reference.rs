//! A reference of the meter that is too simple to be wrong.

use std::collections::HashMap;

use lanekeeper::dispatch::ports::{
    CapKey, CapRequest, JobRequest, TargetCeiling, TryId, TryResult,
};
use lanekeeper::domain::Verdict;

use super::world::*;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Claim {
    Sending(TryId),
    Unfinished(TryId),
    Sent,
}

/// A count within one second.
#[derive(Default)]
struct Window {
    count: u32,
    ends: u64,
}

impl Window {
    fn count(&self, now: u64) -> u32 {
        if now < self.ends { self.count } else { 0 }
    }

    fn add(&mut self, now: u64) {
        if now >= self.ends {
            (self.count, self.ends) = (0, now + 1_000);
        }
        self.count += 1;
    }
}

/// What should happen, in the words of the rules.
#[derive(Default)]
pub struct Reference {
    claims: HashMap<u8, Claim>,
    account: Window,
    numbers: HashMap<Box<str>, Window>,
    services: HashMap<Box<str>, Window>,
    /// When which jobs were admitted, by cap and recipient.
    capped: HashMap<(String, String), HashMap<u8, u64>>,
    pub now: u64,
}

impl Reference {
    /// What the account's counter says.
    pub fn count(&self) -> u32 {
        self.account.count(self.now)
    }

    /// Offers a job. `None` stands for a duplicate, whose record the reference does not keep.
    pub fn admit(&mut self, name: u8, job: &JobRequest, ceiling: u32) -> Option<Expected> {
        let verdict = match self.claims.get(&name) {
            Some(Claim::Sent) => return None,
            Some(Claim::Sending(_)) => return Some(Expected::Is(CLAIMED)),
            Some(Claim::Unfinished(_)) => MAYBE_TWICE,
            None => PASSES,
        };
        if let Some(cap) = job.caps.iter().find(|cap| self.is_full(cap, name)) {
            return Some(Expected::Capped(cap.key.cap.to_string()));
        }
        let now = self.now;
        let over = |windows: &HashMap<Box<str>, Window>, target: &Option<TargetCeiling>| {
            target.as_ref().is_some_and(|target| {
                let window = windows.get(&target.target);
                window.map_or(0, |window| window.count(now)) >= target.per_second
            })
        };
        if over(&self.numbers, &job.number) {
            return Some(Expected::Is(OVER_NUMBER));
        }
        if over(&self.services, &job.service) {
            return Some(Expected::Is(OVER_SERVICE));
        }
        if self.count() >= ceiling {
            return Some(Expected::Is(OVER));
        }
        self.enter(name, job);
        Some(Expected::Is(verdict))
    }

    fn is_full(&self, cap: &CapRequest, name: u8) -> bool {
        let counted = self.counted(cap);
        !counted.contains(&name) && counted.len() >= usize::try_from(cap.limit).unwrap()
    }

    fn counted(&self, cap: &CapRequest) -> Vec<u8> {
        let window = u64::try_from(cap.window.as_millis()).unwrap();
        let jobs = self.capped.get(&place(&cap.key)).into_iter().flatten();
        let in_window = jobs.filter(|(_, since)| *since + window > self.now);
        in_window.map(|(name, _)| *name).collect()
    }

    fn enter(&mut self, name: u8, job: &JobRequest) {
        let now = self.now;
        self.account.add(now);
        for (windows, target) in [
            (&mut self.numbers, &job.number),
            (&mut self.services, &job.service),
        ] {
            if let Some(target) = target {
                windows.entry(target.target.clone()).or_default().add(now);
            }
        }
        for cap in &job.caps {
            if !self.counted(cap).contains(&name) {
                let jobs = self.capped.entry(place(&cap.key)).or_default();
                jobs.insert(name, now);
            }
        }
        self.claims.insert(name, Claim::Sending(job.try_id));
    }

    /// A job's try ends so, and, if it `ends`, the job with it.
    pub fn conclude(&mut self, name: u8, job: &JobRequest, result: &TryResult, ends: bool) {
        let held = self.claims.get(&name).copied();
        let own =
            matches!(held, Some(Claim::Sending(by) | Claim::Unfinished(by)) if by == job.try_id);
        let unknown = Claim::Unfinished(job.try_id);
        match result {
            TryResult::Sent { .. } => drop(self.claims.insert(name, Claim::Sent)),
            TryResult::NotSent if own => drop(self.claims.remove(&name)),
            TryResult::Unknown if own => drop(self.claims.insert(name, unknown)),
            TryResult::NotSent | TryResult::Unknown => {}
        }
        let is_unsent = *result == TryResult::NotSent && !self.claims.contains_key(&name);
        for cap in job.caps.iter().filter(|_| ends && is_unsent) {
            let jobs = self.capped.entry(place(&cap.key)).or_default();
            jobs.remove(&name);
        }
    }
}

fn place(key: &CapKey) -> (String, String) {
    (key.cap.to_string(), key.recipient.to_string())
}

/// What a verdict is to be.
#[derive(Debug)]
pub enum Expected {
    Is(Verdict),
    Capped(String),
}

impl Expected {
    /// Checks a verdict.
    pub fn check(&self, verdict: &Verdict) {
        match self {
            Self::Is(expected) => assert_eq!(verdict, expected),
            Self::Capped(cap) => assert_eq!(full_cap(verdict), Some(cap.as_str())),
        }
    }
}
