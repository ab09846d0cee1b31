//! What a [`super::Failover`] knows: pure bookkeeping, no waiting.

use std::collections::HashMap;

use tokio::time::Instant;

use super::FailoverOptions;
use super::announcer::Announcer;
use super::backlog::Backlog;
use super::breaker::Breaker;
use crate::dispatch::ports::{
    AccountAnswer, AccountRequest, CapKey, Conclusion, JobRequest, TryResult,
};
use crate::domain::{AccountId, Counter, Lane, Limit, MeterMode, Verdict};
use crate::meter::claims::{ClaimBook, Moment, Standing};
use crate::meter::local::{Asked, Books, Pending, SWEEP_FROM, Window, decide};
use crate::meter::targets::Targets;
use crate::meter::{StoreAnswer, StoreError};
use crate::telemetry::Telemetry;

/// One account, seen from here.
#[derive(Debug, Default)]
struct Account {
    /// The window last reported by the store, or this process's own.
    window: Window,
    /// Set while the window is this process's own: why it had to be.
    local: Option<StoreError>,
    /// What the store is being asked about.
    pending: Pending,
}

impl Account {
    /// Why decisions have to be made here, if they have to be.
    fn is_local(&self, now: Instant) -> Option<StoreError> {
        self.local.filter(|_| self.window.is_open(now))
    }
}

pub(super) struct State {
    accounts: HashMap<AccountId, Account>,
    sweep_at: usize,
    keeps_claims: bool,
    /// Windows of numbers and services begin with what the store let this process send.
    pub(super) books: Books,
    /// What the store has not recorded.
    pub(super) backlog: Backlog,
    breaker: Breaker,
    announcer: Announcer,
    telemetry: Telemetry,
}

impl State {
    pub(super) fn new(options: &FailoverOptions, telemetry: Telemetry) -> Self {
        telemetry.meter_mode(MeterMode::Shared);
        Self {
            accounts: HashMap::new(),
            sweep_at: SWEEP_FROM,
            keeps_claims: !options.claim_life.is_zero(),
            books: Books {
                claims: ClaimBook::new(options.claim_life, options.remembered),
                targets: Targets::new(options.remembered),
                caps: None,
            },
            backlog: Backlog::new(options.remembered),
            breaker: Breaker::new(options.failures_to_open),
            announcer: Announcer::new(),
            telemetry,
        }
    }

    /// Why the store is left alone, if it is.
    pub(super) fn away(&self) -> Option<StoreError> {
        self.breaker.open()
    }

    /// Whether the keeper has something to do.
    pub(super) fn needs_care(&self) -> bool {
        let away = self.away();
        away.is_some() || !self.backlog.is_empty() || !self.announcer.is_up_to_date(away)
    }

    /// Why an account's decisions have to be made here, if they have to be.
    pub(super) fn decides_here(&self, account: &AccountId, now: Moment) -> Option<StoreError> {
        let account = self.accounts.get(account);
        let local = account.and_then(|account| account.is_local(now.instant));
        self.away().or(local)
    }

    /// An account's counter, as far as it is known here.
    pub(super) fn counter(&self, account: &AccountId, now: Moment) -> Counter {
        let account = self.accounts.get(account);
        let window = account.map_or_else(Window::default, |account| account.window);
        window.counter(now.instant)
    }

    /// The store is being asked about these.
    pub(super) fn start(&mut self, jobs: &[(AccountId, Asked)], now: Instant) {
        for (account, asked) in jobs {
            let account = self.account(account);
            account
                .pending
                .start(*asked, account.window.counter(now).count);
        }
    }

    /// It is being asked no more.
    pub(super) fn finish(&mut self, jobs: &[(AccountId, Asked)]) {
        for (account, asked) in jobs {
            self.account(account).pending.finish(*asked);
        }
    }

    /// Takes over what the store has decided.
    pub(super) fn adopt(
        &mut self,
        request: &AccountRequest,
        answer: StoreAnswer,
        now: Moment,
    ) -> AccountAnswer {
        let mut admitted = 0;
        let mut verdicts = answer.verdicts;
        for (job, verdict) in std::iter::zip(&request.jobs, &mut verdicts) {
            if let Verdict::Admitted { possible_duplicate } = *verdict {
                let admitted = (possible_duplicate, answer.at_ms);
                *verdict = self.adopt_admission(&request.account, job, admitted, now);
            }
            if matches!(verdict, Verdict::Admitted { .. }) {
                admitted += 1;
                let targets = &mut self.books.targets;
                targets.add(&request.account, job, now.instant);
            }
        }
        let account = self.account(&request.account);
        if account.is_local(now.instant).is_some() {
            // Another call has fallen open meanwhile, and left room for these.
            account.window.add(admitted, now.instant);
        } else {
            account.local = None;
            account.window.learn(answer.counter, now.instant);
        }
        AccountAnswer {
            verdicts,
            counter: answer.counter,
            mode: MeterMode::Shared,
            at_ms: answer.at_ms,
        }
    }

    /// The store admits a job; this process may know better, because it has admitted another try
    /// of the same job itself meanwhile.
    fn adopt_admission(
        &mut self,
        account: &AccountId,
        job: &JobRequest,
        (possible_duplicate, at_ms): (bool, u64),
        now: Moment,
    ) -> Verdict {
        let claims = &mut self.books.claims;
        let standing = claims.standing(account, &job.id, now.instant);
        let unfinished = standing == Standing::Unfinished;
        if let Some(verdict) = standing.verdict(job.door) {
            if verdict == Verdict::Shed(Limit::Claim) {
                // That try is of the same job, and needs its place in the caps' counts.
                self.remember(not_sent(account, job, Vec::new()));
            }
            return verdict;
        }
        claims.enter(account, job, at_ms, now.instant);
        Verdict::Admitted {
            possible_duplicate: possible_duplicate || unfinished,
        }
    }

    /// Decides on an account's jobs here.
    pub(super) fn fall_open(
        &mut self,
        request: &AccountRequest,
        why: StoreError,
        now: Moment,
    ) -> AccountAnswer {
        let account = self.accounts.entry(request.account.clone()).or_default();
        let verdicts = decide(
            request,
            &mut account.window,
            &mut account.pending,
            &mut self.books,
            now,
        );
        account.local = account.window.is_open(now.instant).then_some(why);
        for lane in Lane::ALL {
            let decisions = request.jobs.iter().filter(|job| job.lane == lane).count();
            self.telemetry.fell_open(lane, why, decisions as u64);
            let unchecked = unchecked(lane, &request.jobs, &verdicts);
            self.telemetry.cap_unchecked(lane, unchecked as u64);
        }
        AccountAnswer {
            verdicts,
            counter: account.window.counter(now.instant),
            mode: MeterMode::Local,
            at_ms: now.wall_ms(),
        }
    }

    /// When the store's answer was lost, it may hold claims for tries that will never be made, and
    /// count them by the jobs' caps. They must not stand in the way of the next ones.
    pub(super) fn disclaim(
        &mut self,
        request: &AccountRequest,
        answer: &AccountAnswer,
        why: StoreError,
        now: Moment,
    ) {
        if !matches!(why, StoreError::TimedOut | StoreError::Unreachable) {
            return;
        }
        for (job, verdict) in std::iter::zip(&request.jobs, &answer.verdicts) {
            if !matches!(verdict, Verdict::Admitted { .. }) {
                let frees = self.given_up(&request.account, job, now);
                self.remember(not_sent(&request.account, job, frees));
            }
        }
    }

    /// The counts that a job gives up when it was not admitted here: none if another try of it is
    /// known here, because the job has its place in them by that one.
    fn given_up(&self, account: &AccountId, job: &JobRequest, now: Moment) -> Vec<CapKey> {
        let standing = self.books.claims.standing(account, &job.id, now.instant);
        let caps = job.caps.iter().filter(|_| standing == Standing::Free);
        caps.map(|cap| cap.key.clone()).collect()
    }

    /// Keeps for the store what it has still to record.
    fn remember(&mut self, conclusion: Conclusion) {
        if self.keeps_claims || conclusion.gives_up() {
            self.backlog.push(conclusion);
        }
    }

    /// The store has recorded how these tries ended.
    pub(super) fn recorded(&mut self, conclusions: &[Conclusion], now: Moment) {
        self.breaker.worked();
        for conclusion in conclusions {
            let account = self.accounts.get(&conclusion.account);
            let is_local = account.is_some_and(|account| account.is_local(now.instant).is_some());
            // What was sent is remembered here too: the next decision may have to do without the
            // store. And decisions that do so already look at no other claims.
            if is_local || matches!(conclusion.result, TryResult::Sent { .. }) {
                self.books.claims.conclude(conclusion, now);
            } else {
                self.books.claims.release(conclusion);
            }
        }
    }

    /// The store has not: they are remembered here, and for it.
    pub(super) fn unrecorded(&mut self, conclusions: Vec<Conclusion>, now: Moment) {
        for conclusion in conclusions {
            self.books.claims.conclude(&conclusion, now);
            self.remember(conclusion);
        }
    }

    /// A call to the store has failed as a whole.
    pub(super) fn call_failed(&mut self, why: StoreError, now: Instant) {
        self.breaker.failed(why);
        match self.away() {
            Some(_) => self.tell(now),
            None => self.announcer.stray(why, now),
        }
    }

    /// The keeper found that the store works, and has caught up with it.
    pub(super) fn store_works(&mut self, now: Instant) {
        self.breaker.close();
        self.tell(now);
    }

    /// The keeper found that it does not.
    pub(super) fn store_fails(&mut self, why: StoreError, now: Instant) {
        self.breaker.failed(why);
        self.breaker.still_failing(why);
        self.tell(now);
    }

    pub(super) fn note_call(&mut self, results: &[Result<StoreAnswer, StoreError>], now: Instant) {
        let failure = results.iter().find_map(|result| result.as_ref().err());
        if results.iter().any(Result::is_ok) {
            self.breaker.worked();
            if let Some(why) = failure {
                self.announcer.stray(*why, now);
            }
        } else if let Some(why) = failure {
            self.call_failed(*why, now);
        }
    }

    fn tell(&mut self, now: Instant) {
        let away = self.away();
        let mode = away.map_or(MeterMode::Shared, |_| MeterMode::Local);
        self.telemetry.meter_mode(mode);
        self.announcer.tell(away, now);
    }

    fn account(&mut self, account: &AccountId) -> &mut Account {
        self.accounts.entry(account.clone()).or_default()
    }

    pub(super) fn sweep(&mut self, now: Instant) {
        if self.accounts.len() >= self.sweep_at {
            self.accounts
                .retain(|_, account| account.window.is_open(now) || !account.pending.is_empty());
            self.sweep_at = SWEEP_FROM.max(self.accounts.len() * 2);
        }
    }
}

/// How many jobs of a lane passed although nobody looked at their caps.
fn unchecked(lane: Lane, jobs: &[JobRequest], verdicts: &[Verdict]) -> usize {
    let passed = std::iter::zip(jobs, verdicts)
        .filter(|(job, verdict)| job.lane == lane && matches!(verdict, Verdict::Admitted { .. }));
    passed.filter(|(job, _)| !job.caps.is_empty()).count()
}

fn not_sent(account: &AccountId, job: &JobRequest, frees: Vec<CapKey>) -> Conclusion {
    Conclusion {
        account: account.clone(),
        id: job.id.clone(),
        try_id: job.try_id,
        result: TryResult::NotSent,
        frees,
    }
}
