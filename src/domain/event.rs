//! What the world is told of a job's end.

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use super::{JobHead, Outcome};

/// One outcome event, as it stands in the array of a message on the outcomes exchange.
/// Events arrive at least once: consumers drop repeats by `account_id` and `id`.
#[derive(Debug, Clone, Copy)]
pub struct OutcomeEvent<'a> {
    /// The job.
    pub head: &'a JobHead,
    /// How it ended.
    pub outcome: Outcome,
    /// What exactly was wrong, where there is more to say than the reason; never a recipient or content.
    pub detail: Option<&'a str>,
    /// The carrier that took or rejected it.
    pub carrier: Option<&'a str>,
    /// The carrier's own reference.
    pub carrier_ref: Option<&'a str>,
    /// Carrier tries.
    pub attempts: u32,
    /// How often a ceiling sent it back.
    pub sheds: u32,
    /// When it ended.
    pub settled_at: Timestamp,
    /// When the gate that refused it will let the recipient's next message pass.
    pub next_allowed_at: Option<Timestamp>,
}

impl Serialize for OutcomeEvent<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let reason = self.outcome.reason();
        Fields {
            id: self.head.id.as_str(),
            account_id: self.head.account.as_str(),
            lane: self.head.lane.as_str(),
            lane_rule: self.head.lane_rule.as_str(),
            channel: &self.head.channel,
            outcome: self.outcome.as_str(),
            reason: (!reason.is_empty()).then_some(reason),
            detail: self.detail,
            carrier: self.carrier,
            carrier_ref: self.carrier_ref,
            attempts: self.attempts,
            sheds: self.sheds,
            enqueued_at: self.head.enqueued_at.map(Millis),
            settled_at: Millis(self.settled_at),
            next_allowed_at: self.next_allowed_at.map(Millis),
            campaign_id: self.head.campaign_id.as_deref(),
            journey_id: self.head.journey_id.as_deref(),
            batch_id: self.head.batch_id.as_deref(),
        }
        .serialize(serializer)
    }
}

#[derive(Serialize)]
struct Fields<'a> {
    id: &'a str,
    account_id: &'a str,
    lane: &'static str,
    lane_rule: &'static str,
    channel: &'a str,
    outcome: &'static str,
    reason: Option<&'static str>,
    detail: Option<&'a str>,
    carrier: Option<&'a str>,
    carrier_ref: Option<&'a str>,
    attempts: u32,
    sheds: u32,
    enqueued_at: Option<Millis>,
    settled_at: Millis,
    next_allowed_at: Option<Millis>,
    campaign_id: Option<&'a str>,
    journey_id: Option<&'a str>,
    batch_id: Option<&'a str>,
}

/// An instant as RFC 3339 in UTC with milliseconds.
struct Millis(Timestamp);

impl Serialize for Millis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:.3}", self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{AccountId, Failure, JobId, Lane, LaneRule, Origin};
    use super::*;

    #[test]
    fn an_event_has_every_field_and_millisecond_instants() {
        let head = JobHead {
            id: JobId::parse("j-1").unwrap(),
            account: AccountId::parse("acme").unwrap(),
            channel: "sms".into(),
            lane: Lane::Marketing,
            lane_rule: LaneRule::Origin,
            origin: Some(Origin::Campaign),
            enqueued_at: Some("2026-01-02T03:04:05.6789Z".parse().unwrap()),
            campaign_id: Some("c".into()),
            journey_id: None,
            batch_id: None,
        };
        let event = OutcomeEvent {
            head: &head,
            outcome: Outcome::Failed(Failure::CarrierRejected),
            detail: Some("status 400"),
            carrier: Some("default"),
            carrier_ref: None,
            attempts: 1,
            sheds: 2,
            settled_at: "2026-01-02T03:04:06Z".parse().unwrap(),
            next_allowed_at: None,
        };
        assert_eq!(
            serde_json::to_value(event).unwrap(),
            serde_json::json!({
                "id": "j-1", "account_id": "acme", "lane": "marketing", "lane_rule": "origin",
                "channel": "sms", "outcome": "failed", "reason": "carrier_rejected",
                "detail": "status 400", "carrier": "default", "carrier_ref": null, "attempts": 1,
                "sheds": 2, "enqueued_at": "2026-01-02T03:04:05.678Z",
                "settled_at": "2026-01-02T03:04:06.000Z", "next_allowed_at": null,
                "campaign_id": "c", "journey_id": null, "batch_id": null,
            })
        );
    }
}
