//! What a [`super::Failover`] knows: pure bookkeeping, no waiting.

use std::collections::HashMap;

use tokio::time::Instant;

use super::FailoverOptions;
use super::announcer::Announcer;
use super::backlog::Backlog;
use super::breaker::Breaker;
use crate::dispatch::ports::{AccountAnswer, AccountRequest, Conclusion, JobRequest, TryResult};
use crate::domain::{AccountId, Lane, Limit, MeterMode, Verdict};
use crate::meter::claims::{ClaimBook, Moment, Standing};
use crate::meter::local::{Asked, Pending, SWEEP_FROM, Window, decide};
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

/// What is to be done about a batch.
pub(super) struct Plan {
    entries: Vec<Entry>,
    /// What the store has to be asked.
    pub(super) asked: Vec<AccountRequest>,
}

enum Entry {
    /// Answered already.
    Done(AccountAnswer),
    /// The next of those asked, and what was not asked because it is known.
    Asked(Vec<Known>),
}

/// A job whose verdict is remembered here, and its place in the request.
struct Known {
    place: usize,
    job: JobRequest,
    verdict: Verdict,
}

pub(super) struct State {
    accounts: HashMap<AccountId, Account>,
    sweep_at: usize,
    claims: ClaimBook,
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
            claims: ClaimBook::new(options.claim_life, options.remembered),
            backlog: Backlog::new(if options.claim_life.is_zero() {
                0
            } else {
                options.remembered
            }),
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

    /// Decides here what has to be decided here, and says what the store has to be asked.
    pub(super) fn plan(&mut self, requests: Vec<AccountRequest>, now: Moment) -> Plan {
        self.sweep(now.instant);
        let mut plan = Plan {
            entries: Vec::with_capacity(requests.len()),
            asked: Vec::with_capacity(requests.len()),
        };
        for request in requests {
            let account = self.accounts.get(&request.account);
            let local = account.and_then(|account| account.is_local(now.instant));
            if let Some(why) = self.away().or(local) {
                let answer = self.fall_open(&request, why, now);
                plan.entries.push(Entry::Done(answer));
            } else {
                self.plan_asking(request, now, &mut plan);
            }
        }
        plan
    }

    /// Takes out of a request what is remembered here, and asks the store about the rest.
    fn plan_asking(&self, mut request: AccountRequest, now: Moment, plan: &mut Plan) {
        let mut verdicts: Vec<(usize, Verdict)> = Vec::new();
        for (place, job) in request.jobs.iter().enumerate() {
            match self.claims.standing(&request.account, &job.id, now.instant) {
                Standing::Sent(record) => {
                    verdicts.push((place, Verdict::Duplicate(record.clone())));
                }
                Standing::InProgress => verdicts.push((place, Verdict::Shed(Limit::Claim))),
                Standing::Free | Standing::Unfinished => {}
            }
        }
        if verdicts.len() == request.jobs.len() {
            let account = self.accounts.get(&request.account);
            let window = account.map_or_else(Window::default, |account| account.window);
            plan.entries.push(Entry::Done(AccountAnswer {
                verdicts: verdicts.into_iter().map(|(_, verdict)| verdict).collect(),
                counter: window.counter(now.instant),
                mode: MeterMode::Shared,
            }));
            return;
        }
        let known = verdicts.into_iter().rev().map(|(place, verdict)| Known {
            place,
            job: request.jobs.remove(place),
            verdict,
        });
        plan.entries.push(Entry::Asked(known.collect()));
        plan.asked.push(request);
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

    /// Completes a batch with the store's results.
    pub(super) fn settle(
        &mut self,
        plan: Plan,
        results: Vec<Result<StoreAnswer, StoreError>>,
        now: Moment,
    ) -> Vec<AccountAnswer> {
        self.note_call(&results, now.instant);
        let missing = std::iter::repeat(Err(StoreError::Failed));
        let mut asked = plan
            .asked
            .into_iter()
            .zip(results.into_iter().chain(missing));
        let mut answers = Vec::with_capacity(plan.entries.len());
        for entry in plan.entries {
            let known = match entry {
                Entry::Done(answer) => {
                    answers.push(answer);
                    continue;
                }
                Entry::Asked(known) => known,
            };
            let Some((request, result)) = asked.next() else {
                break;
            };
            answers.push(self.settle_one(request, known, result, now));
        }
        answers
    }

    /// `known` is in falling order of places.
    fn settle_one(
        &mut self,
        mut request: AccountRequest,
        known: Vec<Known>,
        result: Result<StoreAnswer, StoreError>,
        now: Moment,
    ) -> AccountAnswer {
        let why = match result {
            Ok(answer) if answer.verdicts.len() == request.jobs.len() => {
                let mut answer = self.adopt(&request, answer, now);
                for Known { place, verdict, .. } in known.into_iter().rev() {
                    answer.verdicts.insert(place, verdict);
                }
                return answer;
            }
            Ok(_) => StoreError::Failed,
            Err(why) => why,
        };
        for Known { place, job, .. } in known.into_iter().rev() {
            request.jobs.insert(place, job);
        }
        let answer = self.fall_open(&request, why, now);
        self.disclaim(&request, &answer, why);
        answer
    }

    /// Takes over what the store has decided.
    fn adopt(
        &mut self,
        request: &AccountRequest,
        answer: StoreAnswer,
        now: Moment,
    ) -> AccountAnswer {
        let mut admitted = 0;
        let mut verdicts = answer.verdicts;
        for (job, verdict) in std::iter::zip(&request.jobs, &mut verdicts) {
            if let Verdict::Admitted { possible_duplicate } = *verdict {
                *verdict = self.adopt_admission(&request.account, job, possible_duplicate, now);
                admitted += u32::from(matches!(verdict, Verdict::Admitted { .. }));
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
        }
    }

    /// The store admits a job; this process may know better, because it has admitted another try
    /// of the same job itself meanwhile.
    fn adopt_admission(
        &mut self,
        account: &AccountId,
        job: &JobRequest,
        possible_duplicate: bool,
        now: Moment,
    ) -> Verdict {
        let unfinished = match self.claims.standing(account, &job.id, now.instant) {
            Standing::Free => false,
            Standing::Unfinished => true,
            Standing::InProgress => {
                self.backlog.push(not_sent(account, job));
                return Verdict::Shed(Limit::Claim);
            }
            Standing::Sent(record) => return Verdict::Duplicate(record.clone()),
        };
        self.claims
            .claim(account, &job.id, job.try_id, job.claim_for, now.instant);
        Verdict::Admitted {
            possible_duplicate: possible_duplicate || unfinished,
        }
    }

    /// Decides on an account's jobs here.
    fn fall_open(
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
            &mut self.claims,
            now,
        );
        account.local = account.window.is_open(now.instant).then_some(why);
        for lane in Lane::ALL {
            let decisions = request.jobs.iter().filter(|job| job.lane == lane).count();
            self.telemetry.fell_open(lane, why, decisions as u64);
        }
        AccountAnswer {
            verdicts,
            counter: account.window.counter(now.instant),
            mode: MeterMode::Local,
        }
    }

    /// When the store's answer was lost, it may hold claims for tries that will never be made.
    /// They must not stand in the way of the next ones.
    fn disclaim(&mut self, request: &AccountRequest, answer: &AccountAnswer, why: StoreError) {
        if !matches!(why, StoreError::TimedOut | StoreError::Unreachable) {
            return;
        }
        for (job, verdict) in std::iter::zip(&request.jobs, &answer.verdicts) {
            if !matches!(verdict, Verdict::Admitted { .. }) {
                self.backlog.push(not_sent(&request.account, job));
            }
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
                self.claims.conclude(conclusion, now);
            } else {
                self.claims.release(conclusion);
            }
        }
    }

    /// The store has not: they are remembered here, and for it.
    pub(super) fn unrecorded(&mut self, conclusions: Vec<Conclusion>, now: Moment) {
        for conclusion in conclusions {
            self.claims.conclude(&conclusion, now);
            self.backlog.push(conclusion);
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

    fn note_call(&mut self, results: &[Result<StoreAnswer, StoreError>], now: Instant) {
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

    fn sweep(&mut self, now: Instant) {
        if self.accounts.len() >= self.sweep_at {
            self.accounts
                .retain(|_, account| account.window.is_open(now) || !account.pending.is_empty());
            self.sweep_at = SWEEP_FROM.max(self.accounts.len() * 2);
        }
    }
}

fn not_sent(account: &AccountId, job: &JobRequest) -> Conclusion {
    Conclusion {
        account: account.clone(),
        id: job.id.clone(),
        try_id: job.try_id,
        result: TryResult::NotSent,
        frees: Vec::new(),
    }
}
