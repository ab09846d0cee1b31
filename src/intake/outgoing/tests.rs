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
fn a_dead_message_moves_with_what_it_came_with_and_nothing_that_could_harm_it() {
    let mut headers = FieldTable::default();
    for name in ["x-reason", "mine", "x-delivery-count", "CC"] {
        headers.insert(name.into(), text(name));
    }
    let received = BasicProperties::default()
        .with_headers(headers)
        .with_content_type("text/plain".into())
        .with_timestamp(7)
        .with_message_id("m-1".into())
        .with_expiration("1000".into())
        .with_user_id("somebody".into());
    let names = Names::new("lk").unwrap();
    let moved = Outgoing::dead_again(&names, &received, Payload::new("x"));
    let kept: Vec<_> = moved
        .headers
        .inner()
        .keys()
        .map(ShortString::as_str)
        .collect();
    assert_eq!(kept, ["mine", "x-reason"]);
    let properties = moved.properties();
    assert_eq!(properties.content_type(), &Some("text/plain".into()));
    assert_eq!(properties.timestamp(), &Some(7));
    assert_eq!(properties.message_id(), &Some("m-1".into()));
    assert_eq!(properties.delivery_mode(), &Some(PERSISTENT));
    assert_eq!(
        (properties.expiration(), properties.user_id()),
        (&None, &None)
    );
}

#[test]
fn what_names_no_account_goes_where_no_lane_is_known() {
    let names = Names::new("lk").unwrap();
    let message = Outgoing::to_send(&names, None, Payload::new("x"));
    assert_eq!(message.exchange.as_str(), "lk.send");
    assert_eq!(message.key.as_str(), "transactional.unknown");
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
