//! Counting in this process: one window per account, with the rules of the shared counters.
//!
//! Everything here is pure. The instant is passed in.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use super::caps::CapBook;
use super::claims::{ClaimBook, Moment, Standing};
use super::targets::Targets;
use super::{Standing as StandingNow, StoreAnswer};
use crate::dispatch::ports::{AccountRequest, Conclusion, Door, JobRequest};
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

/// What is known of single jobs, recipients, numbers and services.
#[derive(Debug)]
pub(super) struct Books {
    pub(super) claims: ClaimBook,
    pub(super) targets: Targets,
    /// `None` where nobody knows what other replicas have sent: then caps allow.
    pub(super) caps: Option<CapBook>,
}

impl Books {
    /// What keeps a job from passing, whatever its lane; or nothing, and whether an earlier try
    /// of it has no known result.
    fn check(&self, account: &AccountId, job: &JobRequest, now: Moment) -> Result<bool, Verdict> {
        let standing = self.claims.standing(account, &job.id, now.instant);
        let unfinished = standing == Standing::Unfinished;
        if let Some(verdict) = standing.verdict(job.door) {
            return Err(verdict);
        }
        if is_paid(job, now) {
            return Ok(unfinished);
        }
        let caps = self.caps.as_ref();
        if let Some(capped) = caps.and_then(|caps| caps.full(account, job, now)) {
            return Err(Verdict::Capped(capped));
        }
        match self.targets.reached(account, job, now.instant) {
            Some(limit) => Err(Verdict::Shed(limit)),
            None => Ok(unfinished),
        }
    }

    /// Counts a job that passes.
    fn count(&mut self, account: &AccountId, job: &JobRequest, now: Instant) {
        self.targets.add(account, job, now);
        if let Some(caps) = &mut self.caps {
            caps.join(account, job, now);
        }
    }

    /// Notes how a try ended. A job gives up what it frees only if none of its tries is known
    /// that was sent or may have been.
    fn conclude(&mut self, conclusion: &Conclusion, now: Moment) {
        let Conclusion { account, id, .. } = conclusion;
        self.claims.conclude(conclusion, now);
        let standing = self.claims.standing(account, id, now.instant);
        let untried = matches!(standing, Standing::Free | Standing::Admitted(_));
        let leaves = untried && conclusion.gives_up();
        if let Some(caps) = self.caps.as_mut().filter(|_| leaves) {
            caps.leave(account, id, &conclusion.frees, now.instant);
        }
    }
}

/// Decides on one account's jobs in order: claims, caps and the ceilings of numbers and services
/// first, then the lane's ceiling, then the counts. The lane's ceiling leaves room for what is
/// `pending`.
pub(super) fn decide(
    request: &AccountRequest,
    window: &mut Window,
    pending: &mut Pending,
    books: &mut Books,
    now: Moment,
) -> Vec<Verdict> {
    let account = &request.account;
    // A new window may have begun since those jobs were asked about.
    pending.base = pending.base.min(window.counter(now.instant).count);
    let pending = pending.at_most(request.ceilings);
    let verdict = |job: &JobRequest| {
        let possible_duplicate = match books.check(account, job, now) {
            Ok(unfinished) => unfinished,
            Err(verdict) => return verdict,
        };
        if !is_paid(job, now) {
            let count = window.counter(now.instant).count;
            if count.saturating_add(pending) >= request.ceilings.of_lane(job.lane) {
                return Verdict::Shed(Limit::Lane);
            }
            window.add(1, now.instant);
            books.count(account, job, now.instant);
        }
        books.claims.enter(account, job, now.wall_ms(), now.instant);
        Verdict::Admitted { possible_duplicate }
    };
    request.jobs.iter().map(verdict).collect()
}

/// Whether an API server has admitted the job less than a window ago: then nothing counts it again.
fn is_paid(job: &JobRequest, now: Moment) -> bool {
    match job.door {
        Door::Paid { at_ms } => u128::from(now.wall_ms().abs_diff(at_ms)) <= WINDOW.as_millis(),
        Door::Worker | Door::Api => false,
    }
}

/// Counters, caps and claims of many accounts, in memory that does not outgrow what is in use.
#[derive(Debug)]
pub(super) struct LocalCounters {
    windows: HashMap<AccountId, Window>,
    books: Books,
    sweep_at: usize,
}

/// Below so many accounts, ended windows are not worth sweeping away.
pub(super) const SWEEP_FROM: usize = 256;

impl LocalCounters {
    /// Empty counters; at most `bound` of each kind. For the claims see [`ClaimBook::new`].
    pub(super) fn new(claim_life: Duration, bound: usize) -> Self {
        Self {
            windows: HashMap::new(),
            books: Books {
                claims: ClaimBook::new(claim_life, bound),
                targets: Targets::new(bound),
                caps: Some(CapBook::new(bound)),
            },
            sweep_at: SWEEP_FROM,
        }
    }

    /// Admits what the account's claims, caps and ceilings let pass.
    pub(super) fn admit(&mut self, request: &AccountRequest, now: Moment) -> StoreAnswer {
        self.sweep(now.instant);
        let window = self.windows.entry(request.account.clone()).or_default();
        let mut pending = Pending::default();
        let verdicts = decide(request, window, &mut pending, &mut self.books, now);
        StoreAnswer {
            verdicts,
            counter: window.counter(now.instant),
            at_ms: now.wall_ms(),
        }
    }

    /// What an admission of a job would meet.
    pub(super) fn look(&self, account: &AccountId, job: &JobRequest, now: Instant) -> StandingNow {
        let Books {
            claims,
            targets,
            caps,
        } = &self.books;
        let window = self.windows.get(account).copied().unwrap_or_default();
        let counted = |target| targets.counted(account, target, now);
        StandingNow {
            claim: claims.standing(account, &job.id, now).into(),
            caps: caps
                .as_ref()
                .map_or_else(Vec::new, |caps| caps.look(account, job, now)),
            number: job
                .number
                .as_ref()
                .map_or(0, |one| counted((Limit::Number, one))),
            service: job
                .service
                .as_ref()
                .map_or(0, |one| counted((Limit::Service, one))),
            account: window.counter(now).count,
        }
    }

    /// An account's counter.
    pub(super) fn counter(&self, account: &AccountId, now: Moment) -> Counter {
        let window = self.windows.get(account).copied().unwrap_or_default();
        window.counter(now.instant)
    }

    /// Notes how a try ended.
    pub(super) fn conclude(&mut self, conclusion: &Conclusion, now: Moment) {
        self.books.conclude(conclusion, now);
    }

    fn sweep(&mut self, now: Instant) {
        if self.windows.len() >= self.sweep_at {
            self.windows.retain(|_, window| window.is_open(now));
            self.sweep_at = SWEEP_FROM.max(self.windows.len() * 2);
        }
    }
}
