//! A message as clients see it.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::{JobId, Region, SentRecord};
use crate::ledger::{Entry, Step, Waiting, trace, trace_of_admitted, trace_of_waiting};

/// A message, in short.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct MessageSummary {
    /// Its id.
    pub message_id: String,
    /// Where it is: `queued`, `sending`, `waiting`; or how it has ended: `dispatched`, `refused`,
    /// `failed`, `expired`, `cancelled`.
    #[schema(example = "dispatched")]
    pub status: String,
    /// Why: of refused and failed messages the reason, of waiting ones what for.
    pub reason: Option<String>,
    /// What exactly was wrong, where there is more to say than the reason.
    pub detail: Option<String>,
    /// The channel.
    pub channel: Option<String>,
    /// The recipient in the form in which the ledger keeps it: a digest, the last digits, or nothing.
    pub recipient: Option<String>,
    /// The lane.
    pub traffic_lane: Option<String>,
    /// What chose the lane: `traffic_lane`, `priority`, `origin` or `default`.
    pub lane_rule: Option<String>,
    /// What kind of program made it: `api`, `campaign`, `journey`.
    pub origin: Option<String>,
    /// The campaign it belongs to.
    pub campaign_id: Option<String>,
    /// The journey it belongs to.
    pub journey_id: Option<String>,
    /// The batch it belongs to.
    pub batch_id: Option<String>,
    /// Tries to hand it to its carrier.
    pub attempts: Option<i32>,
    /// How often a ceiling sent it back to its queue.
    pub sheds: Option<i32>,
    /// The carrier that took or rejected it.
    pub carrier: Option<String>,
    /// The carrier's own reference.
    pub carrier_ref: Option<String>,
    /// When it was queued.
    #[schema(format = DateTime)]
    pub queued_at: Option<String>,
    /// When it was last counted.
    #[schema(format = DateTime)]
    pub admitted_at: Option<String>,
    /// When it ended.
    #[schema(format = DateTime)]
    pub settled_at: Option<String>,
    /// Of refused messages: when the recipient's next message may pass, where that is known.
    #[schema(format = DateTime)]
    pub next_allowed_at: Option<String>,
}

/// A message, with what decided over it.
#[derive(Debug, Serialize, ToSchema)]
pub struct MessageView {
    /// The message.
    #[serde(flatten)]
    pub summary: MessageSummary,
    /// Each gate's answer, in the order in which they are asked.
    pub gates: Vec<TraceStep>,
    /// What its account's counter stood at with this message in it.
    pub counted_as: Option<i32>,
    /// Whose counter that was: `shared`, or `local` while Redis was away.
    pub counted_by: Option<String>,
    /// Only while it waits.
    pub waiting: Option<WaitingView>,
}

/// One gate's answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct TraceStep {
    /// Its name.
    #[schema(example = "quiet_hours")]
    pub gate: &'static str,
    /// `passed`, `stopped`, `waits`, `not_asked`, or `unknown`: nobody has written it down.
    pub answer: &'static str,
}

/// How a message waits.
#[derive(Debug, Serialize, ToSchema)]
pub struct WaitingView {
    /// Until when; null: for a decision.
    #[schema(format = DateTime)]
    pub until: Option<String>,
    /// Since when.
    #[schema(format = DateTime)]
    pub since: Option<String>,
    /// When it becomes worthless: released later than that it ends as expired.
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
    /// Holds on what it belongs to at this moment, such as `campaign spring: paused`.
    pub holds: Vec<String>,
}

impl From<Entry> for MessageSummary {
    fn from(entry: Entry) -> Self {
        Self {
            message_id: entry.id,
            status: entry.outcome,
            reason: entry.reason,
            detail: entry.detail,
            channel: Some(entry.channel),
            recipient: entry.recipient,
            traffic_lane: Some(entry.lane),
            lane_rule: Some(entry.lane_rule),
            origin: entry.origin,
            campaign_id: entry.campaign_id,
            journey_id: entry.journey_id,
            batch_id: entry.batch_id,
            attempts: Some(entry.attempts),
            sheds: Some(entry.sheds),
            carrier: entry.carrier,
            carrier_ref: entry.carrier_ref,
            queued_at: entry.enqueued_ms.and_then(instant),
            admitted_at: entry.admitted_ms.and_then(instant),
            settled_at: instant(entry.settled_ms),
            next_allowed_at: entry.next_allowed_ms.and_then(instant),
        }
    }
}

impl MessageView {
    /// A message that has ended.
    pub(super) fn ended(mut entry: Entry) -> Self {
        let admitted = entry.admitted_as.is_some();
        let gates = trace(&entry.outcome, entry.reason.as_deref(), admitted);
        Self {
            gates: steps(gates),
            counted_as: entry.admitted_as,
            counted_by: entry.meter.take(),
            waiting: None,
            summary: entry.into(),
        }
    }

    /// A message that waits.
    pub(super) fn waiting(id: &JobId, row: Waiting, region: Option<Region>) -> Self {
        let gates = steps(trace_of_waiting(&row.reason));
        let job = row.decoded(region);
        let job = job.as_deref();
        let expires_at = job.and_then(|job| job.expires_at);
        let waiting = WaitingView {
            until: row.due_ms.and_then(instant),
            since: instant(row.since_ms),
            expires_at: expires_at.map(|at| format!("{at:.3}")),
            holds: row.holds,
        };
        let head = job.map(|job| &job.head);
        let origin = head.and_then(|head| head.origin);
        let queued = head.and_then(|head| head.enqueued_at);
        let summary = MessageSummary {
            status: "waiting".to_owned(),
            reason: Some(row.reason),
            channel: head.map(|head| head.channel.to_string()),
            traffic_lane: Some(row.lane),
            lane_rule: head.map(|head| head.lane_rule.as_str().to_owned()),
            origin: origin.map(|origin| origin.as_str().to_owned()),
            campaign_id: row.campaign_id,
            journey_id: row.journey_id,
            batch_id: row.batch_id,
            attempts: Some(row.attempts),
            sheds: Some(row.sheds),
            queued_at: queued.map(|at| format!("{at:.3}")),
            ..of(id, "")
        };
        Self {
            summary,
            gates,
            counted_as: None,
            counted_by: None,
            waiting: Some(waiting),
        }
    }

    /// A message of which only that is known.
    pub(super) fn on_its_way(id: &JobId, status: &str, accepted_ms: Option<u64>) -> Self {
        let summary = MessageSummary {
            admitted_at: accepted_ms.and_then(unsigned_instant),
            ..of(id, status)
        };
        Self::passed(summary)
    }

    /// A message whose end is not in the ledger yet.
    pub(super) fn sent(id: &JobId, record: &SentRecord) -> Self {
        let summary = MessageSummary {
            carrier: Some(record.carrier.to_string()),
            carrier_ref: record.carrier_ref.as_deref().map(str::to_owned),
            settled_at: unsigned_instant(record.at_ms),
            ..of(id, "dispatched")
        };
        Self::passed(summary)
    }

    fn passed(summary: MessageSummary) -> Self {
        Self {
            summary,
            gates: steps(trace_of_admitted()),
            counted_as: None,
            counted_by: None,
            waiting: None,
        }
    }
}

fn of(id: &JobId, status: &str) -> MessageSummary {
    MessageSummary {
        message_id: id.to_string(),
        status: status.to_owned(),
        ..MessageSummary::default()
    }
}

fn steps(trace: Vec<Step>) -> Vec<TraceStep> {
    let step = |(gate, answer): Step| TraceStep {
        gate: gate.as_str(),
        answer: answer.as_str(),
    };
    trace.into_iter().map(step).collect()
}

/// As everywhere: RFC 3339 in UTC with milliseconds.
fn instant(millis: i64) -> Option<String> {
    let instant = Timestamp::from_millisecond(millis).ok()?;
    Some(format!("{instant:.3}"))
}

fn unsigned_instant(millis: u64) -> Option<String> {
    i64::try_from(millis).ok().and_then(instant)
}
