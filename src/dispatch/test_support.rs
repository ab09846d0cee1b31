//! Small makers for the tests of the parts.

use std::sync::OnceLock;
use std::time::Duration;

use tokio::time::Instant;

use super::in_hand::InHand;
use super::ports::Receipt;
use crate::domain::{AccountId, Channel, Job, JobHead, JobHeaders, JobId, Lane, LaneRule, Payload};

/// An instant so many milliseconds after the first one asked for.
pub(super) fn instant(ms: u64) -> Instant {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    *ORIGIN.get_or_init(Instant::now) + Duration::from_millis(ms)
}

/// A transactional job in hand.
pub(super) fn in_hand(account: &str, id: &str) -> InHand {
    let head = JobHead {
        id: JobId::parse(id).unwrap(),
        account: AccountId::parse(account).unwrap(),
        channel: "sms".into(),
        lane: Lane::Transactional,
        lane_rule: LaneRule::Default,
        origin: None,
        enqueued_at: None,
        campaign_id: None,
        journey_id: None,
        batch_id: None,
    };
    InHand {
        job: Box::new(Job {
            head,
            channel: Channel::Sms,
            to: "+447700900123".into(),
            from: None,
            service_id: None,
            category: None,
            recipient_zone: None,
            not_before: None,
            expires_at: None,
            payload: Payload::new("{}"),
        }),
        receipt: Receipt { epoch: 0, tag: 1 },
        source_lane: Lane::Transactional,
        own_queue: false,
        headers: JobHeaders::default(),
        received_at: instant(0),
        held_since: None,
        carrier: 0,
        is_trial: false,
        attempts: 0,
        maybe_sent: false,
        turned_away: false,
        admission: None,
        caps: Vec::new(),
    }
}
