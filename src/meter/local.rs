//! Counting in this process: one window per account, with the rules of the shared counter.
//!
//! Everything here is pure. The instant is passed in.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use super::StoreAnswer;
use super::claims::{ClaimBook, Moment, Standing};
use crate::dispatch::ports::{AccountRequest, Conclusion, JobRequest};
use crate::domain::{AccountId, Ceilings, Counter, Lane, Limit, Verdict};

/// How long a window lasts from its first count: budgets are per second.
pub(super) const WINDOW: Duration = Duration::from_secs(1);

/// One account's count within one window.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Window {
    count: u32,
    ends: Option<Instant>,
}

impl Window {
    /// Whether a window is open at `now`.
    pub(super) fn is_open(self, now: Instant) -> bool {
        self.ends.is_some_and(|ends| ends > now)
    }

    /// The counter as others see it.
    pub(super) fn counter(self, now: Instant) -> Counter {
        match self.ends {
            Some(ends) if ends > now => Counter {
                count: self.count,
                window_left: ends - now,
            },
            _ => Counter {
                count: 0,
                window_left: Duration::ZERO,
            },
        }
    }

    /// Counts `jobs` more, opening a window when none is open.
    pub(super) fn add(&mut self, jobs: u32, now: Instant) {
        if jobs == 0 {
            return;
        }
        if !self.is_open(now) {
            *self = Self {
                count: 0,
                ends: Some(now + WINDOW),
            };
        }
        self.count = self.count.saturating_add(jobs);
    }

    /// Takes over what the shared counter says at `now`. Reports may come out of order: two that
    /// end less than half a window apart speak of the same window, and then the larger count is
    /// the later one; one that ends long before what is known already is stale.
    pub(super) fn learn(&mut self, reported: Counter, now: Instant) {
        if reported.window_left.is_zero() {
            return;
        }
        let ends = now + reported.window_left.min(WINDOW);
        let reported = Self {
            count: reported.count,
            ends: Some(ends),
        };
        match self.ends {
            Some(known) if known > now && ends < known + WINDOW / 2 => {
                if ends + WINDOW / 2 > known {
                    self.count = self.count.max(reported.count);
                    self.ends = Some(known.max(ends));
                }
            }
            _ => *self = reported,
        }
    }
}

/// How many jobs of each lane somebody else is being asked about.
pub(super) type Asked = [u32; 2];

/// Jobs of one account that other decisions, still pending, may be admitting at this moment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pending {
    jobs: Asked,
    /// The least that was counted already when they were asked about.
    base: u32,
}

impl Pending {
    /// More jobs are asked about, while the count is known to be `count`.
    pub(super) fn start(&mut self, asked: Asked, count: u32) {
        self.base = if self.is_empty() {
            count
        } else {
            self.base.min(count)
        };
        for (mine, theirs) in self.jobs.iter_mut().zip(asked) {
            *mine += theirs;
        }
    }

    /// These are asked about no more.
    pub(super) fn finish(&mut self, asked: Asked) {
        for (mine, theirs) in self.jobs.iter_mut().zip(asked) {
            *mine = mine.saturating_sub(theirs);
        }
    }

    /// Whether there are none.
    pub(super) fn is_empty(self) -> bool {
        self.jobs == [0, 0]
    }

    /// The most that they add to the count: of the marketing jobs, what their own ceiling lets
    /// pass, so that the reserve stays free for others.
    fn at_most(self, ceilings: Ceilings) -> u32 {
        let room = ceilings.of_lane(Lane::Marketing).saturating_sub(self.base);
        let marketing = self.jobs[Lane::Marketing.index()].min(room);
        marketing.saturating_add(self.jobs[Lane::Transactional.index()])
    }
}

/// Decides on one account's jobs in order: claims first, then the ceiling, then the count. The
/// ceilings leave room for what is `pending`.
pub(super) fn decide(
    request: &AccountRequest,
    window: &mut Window,
    pending: &mut Pending,
    claims: &mut ClaimBook,
    now: Moment,
) -> Vec<Verdict> {
    let account = &request.account;
    // A new window may have begun since those jobs were asked about.
    pending.base = pending.base.min(window.counter(now.instant).count);
    let pending = pending.at_most(request.ceilings);
    let verdict = |job: &JobRequest| {
        let possible_duplicate = match claims.standing(account, &job.id, now.instant) {
            Standing::Sent(record) => return Verdict::Duplicate(record.clone()),
            Standing::InProgress => return Verdict::Shed(Limit::Claim),
            Standing::Unfinished => true,
            Standing::Free => false,
        };
        let count = window.counter(now.instant).count;
        if count.saturating_add(pending) >= request.ceilings.of_lane(job.lane) {
            return Verdict::Shed(Limit::Lane);
        }
        window.add(1, now.instant);
        claims.claim(account, &job.id, job.try_id, job.claim_for, now.instant);
        Verdict::Admitted { possible_duplicate }
    };
    request.jobs.iter().map(verdict).collect()
}

/// Counters and claims of many accounts, in memory that does not outgrow what is in use.
#[derive(Debug)]
pub(super) struct LocalCounters {
    windows: HashMap<AccountId, Window>,
    claims: ClaimBook,
    sweep_at: usize,
}

/// Below so many accounts, ended windows are not worth sweeping away.
pub(super) const SWEEP_FROM: usize = 256;

impl LocalCounters {
    /// Empty counters; for the claims see [`ClaimBook::new`].
    pub(super) fn new(claim_life: Duration, claim_bound: usize) -> Self {
        Self {
            windows: HashMap::new(),
            claims: ClaimBook::new(claim_life, claim_bound),
            sweep_at: SWEEP_FROM,
        }
    }

    /// Admits what the account's claims and ceilings let pass.
    pub(super) fn admit(&mut self, request: &AccountRequest, now: Moment) -> StoreAnswer {
        self.sweep(now.instant);
        let window = self.windows.entry(request.account.clone()).or_default();
        let verdicts = decide(
            request,
            window,
            &mut Pending::default(),
            &mut self.claims,
            now,
        );
        StoreAnswer {
            verdicts,
            counter: window.counter(now.instant),
        }
    }

    /// Notes how a try ended.
    pub(super) fn conclude(&mut self, conclusion: &Conclusion, now: Moment) {
        self.claims.conclude(conclusion, now);
    }

    fn sweep(&mut self, now: Instant) {
        if self.windows.len() >= self.sweep_at {
            self.windows.retain(|_, window| window.is_open(now));
            self.sweep_at = SWEEP_FROM.max(self.windows.len() * 2);
        }
    }
}
