//! Ended jobs as rows.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;

use super::recipient::RecipientForm;
use crate::dispatch::ports::Ended;
use crate::domain::{Origin, Outcome};

/// Milliseconds in a day.
const DAY: i64 = 86_400_000;

/// What makes a row one of its own: id, account, day.
type Key<'a> = (&'a str, &'a str, i32);

/// The day, in UTC, in days since the Unix epoch.
fn day(ended: &Ended) -> i32 {
    let days = ended.settled_at.as_millisecond().div_euclid(DAY);
    i32::try_from(days).unwrap_or(i32::MAX)
}

/// One row for each job and day, in the order in which every worker writes them. Of several ends of
/// one job it is dispatch that counts, and what is told for the first time rather than again.
pub(super) fn rows(ended: &[Ended]) -> impl Iterator<Item = &Ended> {
    let weight = |one: &Ended| (one.outcome == Outcome::Dispatched, !one.repeated);
    let mut rows: BTreeMap<Key<'_>, &Ended> = BTreeMap::new();
    for one in ended {
        let key = (one.head.id.as_str(), one.head.account.as_str(), day(one));
        let kept = rows.entry(key).or_insert(one);
        if weight(one) > weight(kept) {
            *kept = one;
        }
    }
    rows.into_values()
}

/// The rows, column by column. Instants are in milliseconds since the Unix epoch.
#[derive(Default)]
pub(super) struct Columns<'a> {
    pub accounts: Vec<&'a str>,
    pub ids: Vec<&'a str>,
    pub days: Vec<i32>,
    pub lanes: Vec<&'a str>,
    pub lane_rules: Vec<&'a str>,
    pub origins: Vec<Option<&'a str>>,
    pub campaigns: Vec<Option<Cow<'a, str>>>,
    pub journeys: Vec<Option<Cow<'a, str>>>,
    pub batches: Vec<Option<Cow<'a, str>>>,
    pub channels: Vec<Cow<'a, str>>,
    pub recipients: Vec<Option<String>>,
    pub outcomes: Vec<&'a str>,
    pub reasons: Vec<Option<&'a str>>,
    pub details: Vec<Option<Cow<'a, str>>>,
    pub carriers: Vec<Option<&'a str>>,
    pub carrier_refs: Vec<Option<Cow<'a, str>>>,
    pub attempts: Vec<i32>,
    pub sheds: Vec<i32>,
    pub admitted_as: Vec<Option<i32>>,
    pub meters: Vec<Option<&'a str>>,
    pub enqueued: Vec<Option<i64>>,
    pub admitted: Vec<Option<i64>>,
    pub settled: Vec<i64>,
    pub next_allowed: Vec<Option<i64>>,
}

impl<'a> Columns<'a> {
    pub(super) fn of(rows: impl Iterator<Item = &'a Ended>, form: &RecipientForm) -> Self {
        let mut columns = Self::default();
        for one in rows {
            columns.push_job(one, form);
            columns.push_end(one);
        }
        columns
    }

    fn push_job(&mut self, ended: &'a Ended, form: &RecipientForm) {
        let head = &ended.head;
        self.accounts.push(head.account.as_str());
        self.ids.push(head.id.as_str());
        self.days.push(day(ended));
        self.lanes.push(head.lane.as_str());
        self.lane_rules.push(head.lane_rule.as_str());
        self.origins.push(head.origin.map(Origin::as_str));
        self.campaigns
            .push(head.campaign_id.as_deref().map(storable));
        self.journeys.push(head.journey_id.as_deref().map(storable));
        self.batches.push(head.batch_id.as_deref().map(storable));
        self.channels.push(storable(&head.channel));
        let recipient = ended.recipient.as_deref();
        let kept = recipient.and_then(|recipient| form.keep(&head.account, recipient));
        self.recipients.push(kept);
        self.enqueued
            .push(head.enqueued_at.map(Timestamp::as_millisecond));
    }

    fn push_end(&mut self, ended: &'a Ended) {
        let reason = ended.outcome.reason();
        self.outcomes.push(ended.outcome.as_str());
        self.reasons.push((!reason.is_empty()).then_some(reason));
        self.details.push(ended.detail.as_deref().map(storable));
        self.carriers.push(ended.carrier.as_deref());
        self.carrier_refs
            .push(ended.carrier_ref.as_deref().map(storable));
        self.attempts.push(count(ended.attempts));
        self.sheds.push(count(ended.sheds));
        let admission = ended.admission;
        self.admitted_as
            .push(admission.map(|admission| count(admission.count)));
        self.meters
            .push(admission.map(|admission| admission.mode.as_str()));
        self.admitted
            .push(admission.map(|admission| admission.at.as_millisecond()));
        self.settled.push(ended.settled_at.as_millisecond());
        self.next_allowed
            .push(ended.next_allowed_at.map(Timestamp::as_millisecond));
    }
}

fn count(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// PostgreSQL keeps no NUL in a text, and one row with one would fail all others of its batch.
fn storable(text: &str) -> Cow<'_, str> {
    if text.contains('\0') {
        Cow::Owned(text.replace('\0', "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}
