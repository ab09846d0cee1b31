//! Opt-outs, holds and earlier sends of a batch of jobs, in one question.

mod query;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use sqlx::PgExecutor;

use super::hold_kind::HoldKind;
use crate::dispatch::ports::{Facts, Hold, Inquiry};
use crate::domain::SentRecord;

use query::{Answer, Known, Questions};

/// What is known of each job, in order; asked in one query, whose cost does not grow with the
/// number of opt-outs. An opt-out or hold that was committed before this was called is in it.
///
/// The ledger is asked only about jobs that may have been sent.
///
/// # Errors
/// When the database gives no answer: then nothing is known of any of them.
pub async fn facts(
    executor: impl PgExecutor<'_>,
    inquiries: &[Inquiry<'_>],
) -> Result<Vec<Facts>, sqlx::Error> {
    let targets = Targets::of(inquiries);
    let questions = Questions::of(inquiries, targets.all.iter().copied());
    let answers = questions.ask(executor).await?;
    let mut facts = vec![Facts::default(); inquiries.len()];
    for answer in answers {
        note(&mut facts, &targets, answer);
    }
    Ok(facts)
}

fn note(facts: &mut [Facts], targets: &Targets<'_>, answer: Answer) {
    let Answer { place, known } = answer;
    match known {
        Known::OptedOut => {
            if let Some(one) = facts.get_mut(place) {
                one.opted_out = true;
            }
        }
        Known::Hold(hold) => {
            let pauses_account = hold == Hold::Paused
                && targets
                    .all
                    .get(place)
                    .is_some_and(|(_, kind, _)| *kind == HoldKind::Account);
            for job in targets.jobs.get(place).into_iter().flatten() {
                let one = &mut facts[*job];
                one.hold = one.hold.max(Some(hold));
                one.account_paused |= pauses_account;
            }
        }
        Known::Sent(record) => {
            if let Some(one) = facts.get_mut(place) {
                first_send(&mut one.sent, record);
            }
        }
    }
}

/// Of a job that was sent twice the first time counts.
fn first_send(known: &mut Option<SentRecord>, record: SentRecord) {
    if known.as_ref().is_none_or(|it| record.at_ms < it.at_ms) {
        *known = Some(record);
    }
}

/// Something that a hold may be on: an account's id, the kind and the target's id.
type Target<'a> = (&'a str, HoldKind, &'a str);

/// What the jobs of a batch belong to. Many belong to the same: each is asked about once.
#[derive(Default)]
struct Targets<'a> {
    all: Vec<Target<'a>>,
    /// The places of the jobs that belong to each.
    jobs: Vec<Vec<usize>>,
}

impl<'a> Targets<'a> {
    fn of(inquiries: &'a [Inquiry<'a>]) -> Self {
        let mut targets = Self::default();
        let mut places: HashMap<Target<'a>, usize> = HashMap::new();
        for (job, inquiry) in inquiries.iter().enumerate() {
            for target in targets_of(inquiry) {
                match places.entry(target) {
                    Entry::Occupied(known) => targets.jobs[*known.get()].push(job),
                    Entry::Vacant(new) => {
                        new.insert(targets.all.len());
                        targets.all.push(target);
                        targets.jobs.push(vec![job]);
                    }
                }
            }
        }
        targets
    }
}

fn targets_of<'a>(inquiry: &Inquiry<'a>) -> impl Iterator<Item = Target<'a>> + use<'a> {
    let account = inquiry.account.as_str();
    let belongings = [
        (HoldKind::Account, Some(account)),
        (HoldKind::Campaign, inquiry.campaign),
        (HoldKind::Journey, inquiry.journey),
        (HoldKind::Batch, inquiry.batch),
    ];
    let named = move |(kind, target): (HoldKind, Option<&'a str>)| Some((account, kind, target?));
    belongings.into_iter().filter_map(named)
}

/// A send as the ledger has it.
fn sent_record(at_ms: i64, carrier: Option<String>, carrier_ref: Option<String>) -> SentRecord {
    SentRecord {
        at_ms: u64::try_from(at_ms).unwrap_or(0),
        carrier: Arc::from(carrier.unwrap_or_default()),
        carrier_ref: carrier_ref.map(Arc::from),
    }
}
