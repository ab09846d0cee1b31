//! The questions that decide whether a job is sent now: to the records, the gates and the meter.
//!
//! They are put when a slot is already the job's own, so that no answer grows old while the job
//! waits: only a job whose look-up began before an opt-out was written may still go out.

use std::collections::HashMap;
use std::iter::zip;
use std::sync::Arc;
use std::time::Duration;

use super::Event;
use crate::accounts::AccountPolicy;
use crate::dispatch::in_hand::{InHand, Try};
use crate::dispatch::ports::{
    AccountRequest, CapKey, CapRequest, Clock, Door, Facts, Inquiry, JobRequest, Meter, Records,
    RecordsError, TargetCeiling, TryId,
};
use crate::domain::{Job, Lane, recipient_digest, recipient_key};
use crate::gates::{Case, TurnedAway, turned_away};

/// A job that has a slot.
#[derive(Debug)]
pub(super) struct Asked {
    pub in_hand: InHand,
    pub policy: Arc<AccountPolicy>,
    pub try_id: TryId,
    /// How long a result may take.
    pub claim_for: Duration,
}

/// What is known of a job.
enum Known {
    /// There is no database.
    Nothing,
    /// This.
    Facts(Facts),
    /// The database cannot be asked about it.
    Unaskable,
}

/// Jobs after the gates.
#[derive(Default)]
struct Gated {
    passed: Vec<Asked>,
    turned: Vec<(InHand, TurnedAway)>,
    unaskable: Vec<InHand>,
}

/// Whom to ask.
pub(super) struct Desk<M, K, R> {
    pub meter: Arc<M>,
    pub clock: Arc<K>,
    pub records: Arc<R>,
    /// How long a claim tells that a job was sent.
    pub claim_life: Duration,
}

impl<M: Meter, K: Clock, R: Records> Desk<M, K, R> {
    /// Asks about jobs of one lane, in one go, and says what became of them.
    pub async fn ask(self, lane: Lane, asked: Vec<Asked>) -> Event {
        let facts = match self.facts(&asked).await {
            Ok(facts) => facts,
            Err(why) => {
                let jobs = asked.into_iter().map(|one| one.in_hand).collect();
                return Event::Unchecked { lane, jobs, why };
            }
        };
        let Gated {
            passed,
            turned,
            unaskable,
        } = self.gate(asked, &facts);
        let (requests, tries) = requests(passed);
        let answers = if requests.is_empty() {
            Vec::new()
        } else {
            self.meter.admit(requests).await
        };
        Event::Answered {
            lane,
            tries,
            answers,
            turned,
            unaskable,
        }
    }

    /// What is known of each job; nothing where there is no database.
    async fn facts(&self, asked: &[Asked]) -> Result<Vec<Known>, RecordsError> {
        if !self.records.exist() {
            return Ok(asked.iter().map(|_| Known::Nothing).collect());
        }
        let now = self.clock.now();
        let inquiries: Vec<_> = asked
            .iter()
            .map(|one| one.in_hand.inquiry(now, self.claim_life))
            .collect();
        let known = facts_of_each(&*self.records, &inquiries).await?;
        let known = known.into_iter();
        Ok(known
            .map(|facts| facts.map_or(Known::Unaskable, Known::Facts))
            .collect())
    }

    fn gate(&self, asked: Vec<Asked>, known: &[Known]) -> Gated {
        let now = self.clock.now();
        let mut gated = Gated::default();
        for (one, known) in zip(asked, known) {
            let facts = match known {
                Known::Facts(facts) => Some(facts),
                Known::Nothing => None,
                Known::Unaskable => {
                    gated.unaskable.push(one.in_hand);
                    continue;
                }
            };
            let case = Case {
                job: &one.in_hand.job,
                policy: &one.policy,
                facts,
                now,
            };
            match turned_away(case) {
                Some((_, answer)) => gated.turned.push((one.in_hand, answer)),
                None => gated.passed.push(one),
            }
        }
        gated
    }
}

/// What is known of each job, asked in one go, and where one of them cannot be asked about, in halves
/// until it is found: it must not keep all others from being sent. `None` stands for that one.
///
/// # Errors
/// When the records do not answer; then nothing more is asked.
pub(crate) async fn facts_of_each<R: Records>(
    records: &R,
    inquiries: &[Inquiry<'_>],
) -> Result<Vec<Option<Facts>>, RecordsError> {
    let mut known = Vec::with_capacity(inquiries.len());
    let mut parts = vec![inquiries];
    while let Some(part) = parts.pop() {
        match records.facts(part).await {
            Ok(facts) if facts.len() == part.len() => known.extend(facts.into_iter().map(Some)),
            Ok(_) => return Err(RecordsError::Failed),
            Err(RecordsError::Unfit) if part.len() > 1 => {
                let (first, second) = part.split_at(part.len() / 2);
                parts.extend([second, first]);
            }
            Err(RecordsError::Unfit) => known.push(None),
            Err(why) => return Err(why),
        }
    }
    Ok(known)
}

/// What the meter is asked, by account, and the tries in the same order.
fn requests(passed: Vec<Asked>) -> (Vec<AccountRequest>, Vec<Try>) {
    let mut places: HashMap<_, usize> = HashMap::new();
    let mut requests: Vec<AccountRequest> = Vec::new();
    let mut by_account: Vec<Vec<Try>> = Vec::new();
    for Asked {
        mut in_hand,
        policy,
        try_id,
        claim_for,
    } in passed
    {
        let account = in_hand.account();
        let place = *places.entry(account.clone()).or_insert_with(|| {
            requests.push(AccountRequest {
                account: account.clone(),
                ceilings: policy.ceilings,
                jobs: Vec::new(),
            });
            by_account.push(Vec::new());
            requests.len() - 1
        });
        let door = in_hand.door();
        let request = job_request(&in_hand.job, &policy, door, try_id, claim_for);
        in_hand.caps = request.caps.iter().map(|cap| cap.key.clone()).collect();
        requests[place].jobs.push(request);
        by_account[place].push(Try { in_hand, try_id });
    }
    (requests, by_account.into_iter().flatten().collect())
}

/// What the meter is asked about a job.
pub(crate) fn job_request(
    job: &Job,
    policy: &AccountPolicy,
    door: Door,
    try_id: TryId,
    claim_for: Duration,
) -> JobRequest {
    JobRequest {
        id: job.head.id.clone(),
        lane: job.lane(),
        door,
        try_id,
        claim_for,
        caps: caps_of(job, policy),
        number: target(policy.number_ceiling(job)),
        service: target(policy.service_ceiling(job)),
    }
}

/// The frequency caps that a job must pass.
pub(super) fn caps_of(job: &Job, policy: &AccountPolicy) -> Vec<CapRequest> {
    let mut rules = policy
        .caps
        .iter()
        .filter(|rule| rule.concerns(job))
        .peekable();
    if rules.peek().is_none() {
        return Vec::new();
    }
    let key = recipient_key(job.channel, &job.to);
    let recipient = recipient_digest(&job.head.account, &key);
    let request = |rule: &crate::accounts::CapRule| CapRequest {
        key: CapKey {
            cap: Arc::clone(&rule.name),
            recipient: Arc::clone(&recipient),
        },
        limit: rule.limit,
        window: rule.window,
    };
    rules.map(request).collect()
}

pub(super) fn target(ceiling: Option<(Box<str>, u32)>) -> Option<TargetCeiling> {
    ceiling.map(|(target, per_second)| TargetCeiling { target, per_second })
}
