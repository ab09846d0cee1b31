//! What the desk asks for many messages at once.

use std::collections::HashMap;
use std::sync::Arc;

use super::rate::Rate;
use crate::accounts::AccountPolicy;
use crate::dispatch::facts_of_each;
use crate::dispatch::ports::{
    AccountRequest, Facts, Inquiry, JobRequest, Meter, Records, RecordsError,
};
use crate::domain::{AccountId, Ceilings, Counter, Job, Lane, Verdict};
use crate::judgement::inquiry_of;

/// A question to the meter: about a job, or only about the counter.
pub(super) struct Asked {
    pub account: AccountId,
    pub ceilings: Ceilings,
    pub job: Option<JobRequest>,
}

/// Its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decision {
    pub verdict: Option<Verdict>,
    pub counter: Counter,
    pub at_ms: u64,
}

impl Decision {
    pub fn rate(&self, lane: Lane, policy: &AccountPolicy) -> Rate {
        let limit = policy.ceilings.of_lane(lane);
        Rate::of(lane, limit, self.counter, self.at_ms)
    }
}

/// What is known of each job, and whether its id may be in use. One that cannot be asked about does
/// not take the others down with it.
pub(super) async fn look_up<R: Records>(
    records: &R,
    jobs: &[(Arc<Job>, bool)],
) -> Vec<Result<Facts, RecordsError>> {
    let inquiries: Vec<_> = jobs
        .iter()
        .map(|(job, may_be_known)| Inquiry {
            maybe_sent: *may_be_known,
            ..inquiry_of(job)
        })
        .collect();
    match facts_of_each(records, &inquiries).await {
        Ok(facts) => {
            let facts = facts.into_iter();
            facts
                .map(|facts| facts.ok_or(RecordsError::Unfit))
                .collect()
        }
        Err(error) => vec![Err(error); inquiries.len()],
    }
}

/// Asks about each account once, and tells each who asked; `None` where there is no answer.
pub(super) async fn decide<M: Meter>(meter: &M, asked: Vec<Asked>) -> Vec<Option<Decision>> {
    let mut places: HashMap<AccountId, usize> = HashMap::new();
    let mut requests: Vec<AccountRequest> = Vec::new();
    let mut jobs = Vec::with_capacity(asked.len());
    for Asked {
        account,
        ceilings,
        job,
    } in asked
    {
        let place = *places.entry(account.clone()).or_insert_with(|| {
            requests.push(AccountRequest {
                account,
                ceilings,
                jobs: Vec::new(),
            });
            requests.len() - 1
        });
        let number = job.map(|job| {
            requests[place].jobs.push(job);
            requests[place].jobs.len() - 1
        });
        jobs.push((place, number));
    }
    let answers = meter.admit(requests).await;
    let decision = |(place, number): (usize, Option<usize>)| {
        let answer = answers.get(place)?;
        let verdict = number.and_then(|number| answer.verdicts.get(number).cloned());
        Some(Decision {
            verdict,
            counter: answer.counter,
            at_ms: answer.at_ms,
        })
    };
    jobs.into_iter().map(decision).collect()
}

#[cfg(test)]
#[path = "rounds_tests.rs"]
mod tests;
