//! Stand-in until the real decoder is merged.

use bytes::Bytes;

use crate::domain::{
    AccountId, Channel, Decoded, Job, JobHead, JobId, LaneHints, Payload, Region, UnrecognisedHints,
};

/// What reading a message gave.
#[derive(Debug)]
pub struct Decoding {
    /// The job, or why there is none.
    pub decoded: Decoded,
    /// Lane hints that nobody understands.
    pub hints: UnrecognisedHints,
}

/// Reads a message.
#[must_use]
pub fn decode(payload: Bytes, _default_region: Option<Region>) -> Decoding {
    use crate::domain::{Field, Hint, Lane, Origin};
    let payload = Payload::new(payload);
    let value: serde_json::Value =
        serde_json::from_slice(payload.as_bytes()).unwrap_or(serde_json::Value::Null);
    let text = |name: &str| value.get(name).and_then(|v| v.as_str());
    let id = text("id").and_then(|id| JobId::parse(id).ok());
    let account = text("account_id").and_then(|id| AccountId::parse(id).ok());
    let hints = LaneHints {
        traffic_lane: value
            .pointer("/metadata/traffic_lane")
            .and_then(|v| v.as_str())
            .and_then(Lane::parse)
            .map_or(Hint::Absent, Hint::Known),
        priority: text("priority")
            .and_then(crate::domain::Priority::parse)
            .map_or(Hint::Absent, Hint::Known),
        origin: text("origin")
            .and_then(Origin::parse)
            .map_or(Hint::Absent, Hint::Known),
    };
    let decoded = match (id, account) {
        (Some(id), Some(account)) => {
            let (lane, lane_rule) = hints.resolve();
            let head = JobHead {
                id,
                account,
                channel: "sms".into(),
                lane,
                lane_rule,
                enqueued_at: None,
                campaign_id: None,
                journey_id: None,
                batch_id: text("batch_id").map(Into::into),
            };
            match text("to").map(|to| crate::domain::normalise_number(to, None)) {
                Some(Ok(to)) => Decoded::Job(Box::new(Job {
                    head,
                    channel: Channel::Sms,
                    to: to.into(),
                    from: None,
                    service_id: None,
                    not_before: None,
                    expires_at: None,
                    payload,
                })),
                Some(Err(error)) => Decoded::Invalid {
                    head: Box::new(head),
                    field: Field::To,
                    detail: error.to_string(),
                },
                None => Decoded::Invalid {
                    head: Box::new(head),
                    field: Field::To,
                    detail: "required".to_owned(),
                },
            }
        }
        _ => Decoded::Undecodable {
            detail: "id or account_id is missing".to_owned(),
            payload,
        },
    };
    Decoding {
        decoded,
        hints: UnrecognisedHints {
            priority: value.get("priority").is_some_and(|p| p == "urgent"),
            ..UnrecognisedHints::default()
        },
    }
}
