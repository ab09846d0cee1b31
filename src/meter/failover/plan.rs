//! A batch on its way: what is decided here, what the store is asked, and how both become answers.

use super::state::State;
use crate::dispatch::ports::{AccountAnswer, AccountRequest, JobRequest};
use crate::domain::{MeterMode, Verdict};
use crate::meter::claims::Moment;
use crate::meter::{StoreAnswer, StoreError};

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

impl State {
    /// Decides here what has to be decided here, and says what the store has to be asked.
    pub(super) fn plan(&mut self, requests: Vec<AccountRequest>, now: Moment) -> Plan {
        self.sweep(now.instant);
        let mut plan = Plan {
            entries: Vec::with_capacity(requests.len()),
            asked: Vec::with_capacity(requests.len()),
        };
        for request in requests {
            if let Some(why) = self.decides_here(&request.account, now) {
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
            let claims = &self.books.claims;
            let standing = claims.standing(&request.account, &job.id, now.instant);
            let verdict = standing.verdict(job.door);
            verdicts.extend(verdict.map(|verdict| (place, verdict)));
        }
        // Without jobs it is the counter that is asked about.
        if !request.jobs.is_empty() && verdicts.len() == request.jobs.len() {
            plan.entries.push(Entry::Done(AccountAnswer {
                verdicts: verdicts.into_iter().map(|(_, verdict)| verdict).collect(),
                counter: self.counter(&request.account, now),
                mode: MeterMode::Shared,
                at_ms: now.wall_ms(),
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
        self.disclaim(&request, &answer, why, now);
        answer
    }
}
