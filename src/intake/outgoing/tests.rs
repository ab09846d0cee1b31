use jiff::Timestamp;

use super::*;
use crate::dispatch::ports::Route;
use crate::domain::{AccountId, JobId, Lane};

#[test]
fn a_job_goes_back_with_our_headers_only() {
    let names = Names::new("lk").unwrap();
    let job = Requeue {
        id: JobId::parse("j-1").unwrap(),
        account: AccountId::parse("acme").unwrap(),
        lane: Lane::Marketing,
        route: Route::Shed,
        headers: JobHeaders {
            attempts: 1,
            sheds: 2,
            enqueued_ms: Some(3),
            admitted_ms: None,
        },
        payload: Payload::new("{}"),
    };
    let message = Outgoing::requeue(&names, job);
    assert_eq!(message.exchange.as_str(), "lk.marketing.shed");
    assert_eq!(message.key.as_str(), "marketing.acme");
    assert!(message.mandatory);
    let properties = message.properties();
    let headers = properties.headers().as_ref().unwrap().inner();
    let names: Vec<_> = headers.keys().map(ShortString::as_str).collect();
    assert_eq!(names, ["lk-attempt", "lk-enqueued-ms", "lk-sheds"]);
    assert_eq!(properties.delivery_mode(), &Some(2));
    assert_eq!(properties.expiration(), &None);
    assert_eq!(properties.user_id(), &None);
}

#[test]
fn a_detail_is_cut_between_characters() {
    assert_eq!(cut("äöü", 3), "ä");
    assert_eq!(cut("abc", 9), "abc");
    let names = Names::new("lk").unwrap();
    let letter = DeadLetter {
        reason: "undecodable",
        detail: "ä".repeat(1000),
        at: Timestamp::from_second(1_700_000_000).unwrap(),
        payload: Payload::new("x"),
    };
    let message = Outgoing::dead(&names, letter);
    let properties = message.properties();
    assert_eq!(properties.timestamp(), &Some(1_700_000_000));
    let detail = message.headers.inner().get("x-detail").cloned();
    assert_eq!(detail, Some(text(&"ä".repeat(250))));
}

#[test]
fn a_dead_message_moves_with_its_reason_and_with_no_other_header_it_came_with() {
    let mut headers = FieldTable::default();
    for name in [
        "x-reason",
        "x-detail",
        "x-death",
        "x-first-death-queue",
        "x-delivery-count",
        "lk-attempt",
        "mine",
        "CC",
        "BCC",
    ] {
        headers.insert(name.into(), text(name));
    }
    let received = BasicProperties::default()
        .with_headers(headers)
        .with_content_type("text/plain".into())
        .with_content_encoding("gzip".into())
        .with_timestamp(7)
        .with_message_id("m-1".into())
        .with_expiration("1000".into())
        .with_user_id("somebody".into())
        .with_reply_to("amq.rabbitmq.reply-to".into());
    let names = Names::new("lk").unwrap();
    let moved = Outgoing::dead_again(&names, &received, Payload::new("x"));
    let mut headers = FieldTable::default();
    for name in ["x-reason", "x-detail"] {
        headers.insert(name.into(), text(name));
    }
    let expected = BasicProperties::default()
        .with_headers(headers)
        .with_delivery_mode(PERSISTENT)
        .with_content_type("text/plain".into())
        .with_content_encoding("gzip".into())
        .with_timestamp(7)
        .with_message_id("m-1".into());
    assert_eq!(moved.properties(), expected);
}

#[test]
fn a_dead_message_without_headers_moves_too() {
    let names = Names::new("lk").unwrap();
    let moved = Outgoing::dead_again(&names, &BasicProperties::default(), Payload::new("x"));
    assert_eq!(moved.key.as_str(), "lk.dead");
    assert!(moved.mandatory && moved.headers.inner().is_empty());
}

#[test]
fn what_names_no_account_has_a_key_that_no_account_can_have() {
    let names = Names::new("lk").unwrap();
    let message = Outgoing::to_send(&names, None, Payload::new("x"));
    assert_eq!(message.exchange.as_str(), "lk.send");
    let key = message.key.as_str();
    assert_eq!(key, "unknown");
    assert!(Lane::ALL.iter().all(|lane| !key.starts_with(lane.as_str())));
    assert!(message.mandatory && message.headers.inner().is_empty());
}

#[test]
fn events_need_no_listener() {
    let names = Names::new("lk").unwrap();
    let batch = EventBatch {
        account: AccountId::parse("acme").unwrap(),
        outcome: "dispatched",
        body: b"[]".to_vec(),
    };
    let message = Outgoing::events(&names, batch);
    assert_eq!(message.key.as_str(), "dispatched.acme");
    assert!(!message.mandatory);
}
