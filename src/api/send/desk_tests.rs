use bytes::Bytes;

use super::*;
use crate::accounts::CapRule;
use crate::api::send::Notes;
use crate::clock::SystemClock;
use crate::domain::{AccountId, Decoded};
use crate::embedded::MemoryRecords;
use crate::intake::decode::decode;
use crate::meter::{ClaimNow, Failover, FailoverOptions, MemoryStore};
use crate::settings::Settings;
use crate::telemetry::Telemetry;

const HOUR: Duration = Duration::from_secs(3_600);

/// A desk whose broker answers with an error, and whose accounts may write to a recipient once.
fn desk(error: PublishError) -> Desk {
    let none: [(&str, &str); 0] = [];
    let directory = Directory::from_settings(&Settings::load(None, none).unwrap());
    let cap = CapRule {
        name: "once".into(),
        channel: None,
        category: None,
        limit: 1,
        window: HOUR,
    };
    directory.change(&account(), |policy| policy.caps.push(cap));
    let clock = Arc::new(SystemClock);
    let store = MemoryStore::new(HOUR, clock.clone());
    let options = FailoverOptions::default();
    let meter = Failover::new(store, options, clock.clone(), Telemetry::unexported());
    Desk::new(DeskParts {
        directory: Arc::new(directory),
        records: Arc::new(AnyRecords::Memory(MemoryRecords::new(clock.clone()))),
        meter: Arc::new(AnyMeter::Memory(meter)),
        outbox: Arc::new(AnyOutbox::Failing(error)),
        clock,
        first_answers: FirstAnswers::Memory(Notes::new(HOUR)),
    })
}

fn account() -> AccountId {
    AccountId::parse("acme").unwrap()
}

fn job(id: &str) -> Arc<Job> {
    let json = format!(
        r#"{{"id":"{id}","account_id":"acme","channel":"sms","to":"+447700900123","body":"x"}}"#
    );
    match decode(Bytes::from(json), None).decoded {
        Decoded::Job(job) => job.into(),
        other => panic!("{other:?}"),
    }
}

async fn fails(desk: &Desk, id: &str, came: Came) -> No {
    desk.send(job(id), came).await.0.unwrap_err()
}

#[tokio::test]
async fn a_broker_that_is_known_to_take_nothing_costs_nothing() {
    let desk = desk(PublishError::NotTried);
    let not_tried = No::NotPublished(PublishError::NotTried);
    for came in [Came::Once, Came::First] {
        assert_eq!(fails(&desk, "a", came).await, not_tried);
    }
    let claim = desk.meter.claim(&account(), &job("a").head.id).await;
    assert_eq!(claim, Ok(ClaimNow::Free));
    // The earlier request may have queued it.
    assert_eq!(fails(&desk, "a", Came::Again).await, No::Unknown);
}

#[tokio::test]
async fn what_nobody_asks_for_again_gives_its_place_in_a_cap_back() {
    let desk = desk(PublishError::Refused);
    let refused = No::NotPublished(PublishError::Refused);
    for id in ["a", "b"] {
        assert_eq!(fails(&desk, id, Came::Once).await, refused);
    }
}

#[tokio::test]
async fn what_has_a_key_keeps_claim_and_place_until_it_is_asked_for_again() {
    let desk = desk(PublishError::Refused);
    let refused = No::NotPublished(PublishError::Refused);
    assert_eq!(fails(&desk, "a", Came::First).await, refused);
    let other = fails(&desk, "b", Came::Once).await;
    assert!(matches!(other, No::Capped { .. }), "{other:?}");
    // Another request with its key may be queueing it: nobody can say that it is in no queue.
    assert_eq!(fails(&desk, "a", Came::First).await, No::Unknown);
}

#[tokio::test]
async fn two_at_once_with_one_key_are_told_by_what_the_broker_says_to_each() {
    let desk = desk(PublishError::TimedOut);
    let (first, second) = tokio::join!(
        fails(&desk, "a", Came::First),
        fails(&desk, "a", Came::Again)
    );
    assert_eq!([first, second], [No::Unknown, No::Unknown]);
}
