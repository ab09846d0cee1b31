//! What is known of a job, in one shape for people and scripts.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use crate::domain::{JobId, Region};
use crate::ledger::{Entry, Waiting, trace};

/// All jobs of one id.
#[derive(Debug, Serialize)]
pub(super) struct Story {
    pub id: String,
    /// One for each account that has a job of that id.
    pub jobs: Vec<JobStory>,
}

/// One account's job.
#[derive(Debug, Default, Serialize)]
pub(super) struct JobStory {
    pub account_id: String,
    /// How it ended: once, unless its end was told anew when nobody knew of it any more.
    pub ends: Vec<End>,
    /// Where it waits: once, unless it was published twice.
    pub waits: Vec<Wait>,
}

#[derive(Debug, Serialize)]
pub(super) struct End {
    pub lane: String,
    pub lane_rule: String,
    pub origin: Option<String>,
    pub campaign_id: Option<String>,
    pub journey_id: Option<String>,
    pub batch_id: Option<String>,
    pub channel: String,
    pub recipient: Option<String>,
    pub outcome: String,
    pub reason: Option<String>,
    pub detail: Option<String>,
    /// In the order in which they are asked.
    pub gates: Vec<GateAnswer>,
    /// What the account's counter stood at with this job in it.
    pub admitted_as: Option<i32>,
    /// Whose counter that was: `shared`, or `local` while Redis was away.
    pub meter: Option<String>,
    pub attempts: i32,
    pub sheds: i32,
    pub carrier: Option<String>,
    pub carrier_ref: Option<String>,
    pub enqueued_at: Option<String>,
    pub admitted_at: Option<String>,
    pub settled_at: Option<String>,
    pub next_allowed_at: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct GateAnswer {
    pub gate: &'static str,
    pub answer: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct Wait {
    pub lane: String,
    pub reason: String,
    /// None: when it is decided.
    pub due_at: Option<String>,
    pub since: Option<String>,
    /// When it becomes worthless: it ends as expired if it is released later than that.
    pub expires_at: Option<String>,
    pub attempts: i32,
    pub sheds: i32,
    pub campaign_id: Option<String>,
    pub journey_id: Option<String>,
    pub batch_id: Option<String>,
    /// Holds on what it belongs to, at this moment.
    pub holds: Vec<String>,
}

impl Story {
    pub(super) fn of(
        id: &JobId,
        ends: Vec<Entry>,
        waiting: Vec<Waiting>,
        region: Option<Region>,
    ) -> Self {
        let mut jobs: BTreeMap<String, JobStory> = BTreeMap::new();
        for end in ends {
            let job = jobs.entry(end.account_id.clone()).or_default();
            job.ends.push(End::of(end));
        }
        for waiting in waiting {
            let job = jobs.entry(waiting.account_id.clone()).or_default();
            job.waits.push(Wait::of(waiting, region));
        }
        let named = |(account_id, job)| JobStory { account_id, ..job };
        Self {
            id: id.to_string(),
            jobs: jobs.into_iter().map(named).collect(),
        }
    }
}

impl End {
    fn of(entry: Entry) -> Self {
        let admitted = entry.admitted_as.is_some();
        let steps = trace(&entry.outcome, entry.reason.as_deref(), admitted);
        let gates = steps.into_iter().map(|(gate, answer)| GateAnswer {
            gate: gate.as_str(),
            answer: answer.as_str(),
        });
        Self {
            gates: gates.collect(),
            enqueued_at: entry.enqueued_ms.and_then(instant),
            admitted_at: entry.admitted_ms.and_then(instant),
            settled_at: instant(entry.settled_ms),
            next_allowed_at: entry.next_allowed_ms.and_then(instant),
            lane: entry.lane,
            lane_rule: entry.lane_rule,
            origin: entry.origin,
            campaign_id: entry.campaign_id,
            journey_id: entry.journey_id,
            batch_id: entry.batch_id,
            channel: entry.channel,
            recipient: entry.recipient,
            outcome: entry.outcome,
            reason: entry.reason,
            detail: entry.detail,
            admitted_as: entry.admitted_as,
            meter: entry.meter,
            attempts: entry.attempts,
            sheds: entry.sheds,
            carrier: entry.carrier,
            carrier_ref: entry.carrier_ref,
        }
    }
}

impl Wait {
    fn of(waiting: Waiting, region: Option<Region>) -> Self {
        let job = waiting.decoded(region);
        Self {
            expires_at: job
                .and_then(|job| job.expires_at)
                .map(|at| format!("{at:.3}")),
            due_at: waiting.due_ms.and_then(instant),
            since: instant(waiting.since_ms),
            lane: waiting.lane,
            reason: waiting.reason,
            attempts: waiting.attempts,
            sheds: waiting.sheds,
            campaign_id: waiting.campaign_id,
            journey_id: waiting.journey_id,
            batch_id: waiting.batch_id,
            holds: waiting.holds,
        }
    }
}

/// As everywhere: RFC 3339 in UTC with milliseconds.
fn instant(millis: i64) -> Option<String> {
    let instant = Timestamp::from_millisecond(millis).ok()?;
    Some(format!("{instant:.3}"))
}
