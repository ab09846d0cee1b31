//! Outcome events as the worker makes them.

use jiff::Timestamp;
use lanekeeper::domain::{Decoded, Failure, Field, JobHead, Outcome, OutcomeEvent, Refusal};
use lanekeeper::intake::decode::decode;
use serde_json::{Value, json};

use super::schema;

const EVENTS: &str = include_str!("../../../docs/schema/outcome-events.schema.json");

fn outcomes() -> Vec<Outcome> {
    let invalid = Field::ALL.map(|field| Outcome::Refused(Refusal::Invalid(field)));
    let mut outcomes = vec![
        Outcome::Dispatched,
        Outcome::Expired,
        Outcome::Cancelled,
        Outcome::Refused(Refusal::OptedOut),
        Outcome::Refused(Refusal::FrequencyCap),
        Outcome::Refused(Refusal::QuietHours),
        Outcome::Refused(Refusal::UnknownAccount),
        Outcome::Failed(Failure::CarrierRejected),
        Outcome::Failed(Failure::AttemptsExhausted),
    ];
    outcomes.extend(invalid);
    outcomes
}

/// What the worker reads of a job, with every field or none but the required ones.
fn head(full: bool) -> JobHead {
    let mut job = json!({"id": "j-1", "account_id": "acme", "channel": "sms"});
    if full {
        for (name, value) in [
            ("enqueued_at", "1970-01-01T00:00:00Z"),
            ("campaign_id", "c"),
            ("journey_id", "j"),
            ("batch_id", "b"),
        ] {
            job[name] = json!(value);
        }
    }
    // Without a recipient it could not be sent, but that is how a head comes alone.
    match decode(serde_json::to_vec(&job).unwrap().into(), None).decoded {
        Decoded::Invalid { head, .. } => *head,
        other => panic!("{other:?}"),
    }
}

fn event(outcome: Outcome, full: bool) -> Value {
    let head = head(full);
    let event = OutcomeEvent {
        head: &head,
        outcome,
        detail: full.then_some("status 400"),
        carrier: full.then_some("default"),
        carrier_ref: full.then_some("ref"),
        attempts: 1,
        sheds: 2,
        settled_at: Timestamp::UNIX_EPOCH,
        next_allowed_at: full.then_some(Timestamp::UNIX_EPOCH),
    };
    serde_json::to_value(event).unwrap()
}

#[test]
fn every_event_that_a_worker_makes_is_valid() {
    let (_, events) = schema(EVENTS);
    for outcome in outcomes() {
        for full in [true, false] {
            let message = json!([event(outcome, full)]);
            let errors: Vec<_> = events
                .iter_errors(&message)
                .map(|e| e.to_string())
                .collect();
            assert!(errors.is_empty(), "{message}: {errors:?}");
        }
    }
}

#[test]
fn what_is_no_message_of_events_is_invalid() {
    let (_, events) = schema(EVENTS);
    let good = event(Outcome::Dispatched, true);
    assert!(events.is_valid(&json!(vec![&good; 256])));
    for wrong in [json!([]), json!(vec![&good; 257]), good.clone()] {
        assert!(!events.is_valid(&wrong));
    }
    let names: Vec<_> = good.as_object().unwrap().keys().cloned().collect();
    for name in names {
        let mut event = good.clone();
        event.as_object_mut().unwrap().remove(&name);
        assert!(!events.is_valid(&json!([event])), "without {name}");
    }
    let wrong = [
        ("outcome", json!("dead")),
        ("lane", json!("bulk")),
        ("settled_at", json!("2026-01-31")),
        ("attempts", json!(-1)),
        ("reason", json!(7)),
    ];
    for (name, value) in wrong {
        let mut event = good.clone();
        event[name] = value;
        assert!(!events.is_valid(&json!([event])), "{name}");
    }
    let mut refused = event(Outcome::Refused(Refusal::UnknownAccount), true);
    refused["reason"] = json!("because");
    assert!(!events.is_valid(&json!([refused])));
}

#[test]
fn the_examples_in_the_schema_are_valid() {
    let (schema, events) = schema(EVENTS);
    let examples = schema["examples"].as_array().unwrap();
    assert!(!examples.is_empty());
    for message in examples {
        assert!(events.is_valid(message), "{message}");
    }
}
