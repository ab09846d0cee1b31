//! Every way by which a job can come in leads through the gates; and texts that a database cannot
//! hold stop nobody else's jobs.

use std::time::Duration;

use serde_json::json;

use crate::support::eventually;
use crate::support::jobs::Offer;
use crate::support::records::Records;
use crate::support::scene::{ACCOUNT, Scene};
use crate::support::stub::Reply;
use crate::support::worker::Worker;

const PATIENCE: Duration = Duration::from_secs(30);
const RECIPIENT: &str = "+447700900001";

/// The exchanges by which a job can reach a lane's queue.
const ENTRIES: [&str; 8] = [
    "send",
    "shared",
    "unrouted",
    "admitted",
    "transactional.shed",
    "marketing.shed",
    "transactional.park",
    "send",
];

/// F5-30: refused on each of them, whatever the job says of its own importance.
#[tokio::test]
async fn no_entry_and_no_priority_leads_past_an_opt_out() {
    let (scene, database) = Scene::with_database("entries").await;
    let records = Records::of(database.pool());
    let opt_out = format!("INSERT INTO suppressions VALUES ('{ACCOUNT}', '{RECIPIENT}', 'all')");
    records.commit(&opt_out).await;
    let worker = Worker::start(&scene.config).await;
    let publisher = scene.publisher().await;
    let important = |id: String| {
        let offer = Offer::otp(ACCOUNT, id).with("to", RECIPIENT);
        offer
            .with("priority", "high")
            .with("metadata", json!({"traffic_lane": "transactional"}))
    };
    for (place, exchange) in ENTRIES.into_iter().enumerate() {
        let plain = Offer::marketing(ACCOUNT, format!("plain-{place}")).with("to", RECIPIENT);
        let offers = [important(format!("important-{place}")), plain];
        publisher.publish_all_to(exchange, &offers).await;
    }
    let jobs = 2 * ENTRIES.len();
    records.await_entries(jobs, PATIENCE).await;
    assert_eq!(records.ended("refused", "opted_out").await, jobs);
    assert_eq!(scene.stub.count(), 0);
    worker.stop().await;
    scene.end().await;
}

/// A job is refused also when it comes back from a try that the carrier did not take, and when its
/// first worker died with it in hand.
#[tokio::test]
async fn gates_are_asked_again_before_each_try() {
    let (scene, database) = Scene::with_database("again").await;
    let scene = scene
        .set("JOBS__MAX_ATTEMPTS", 100)
        .set("JOBS__RETRY_BASE_MS", 200)
        // Longer than the first worker lives.
        .set("CARRIERS__DEFAULT__TIMEOUT_MS", 5_000);
    scene.stub.set_script(|id, _| match id {
        "retried" => Reply::Status(429),
        _ => Reply::Hang,
    });
    let records = Records::of(database.pool());
    let worker = Worker::start(&scene.config).await;
    let jobs = ["retried", "redelivered"];
    let offers = jobs.map(|id| Offer::otp(ACCOUNT, id).with("to", RECIPIENT));
    scene.publisher().await.publish_all(&offers).await;
    scene.stub.wait_for(2, PATIENCE).await;
    let opt_out = format!("INSERT INTO suppressions VALUES ('{ACCOUNT}', '{RECIPIENT}', 'all')");
    records.commit(&opt_out).await;
    let retried = async || !records.entries(ACCOUNT, "retried").await.is_empty();
    eventually("the next try is refused", PATIENCE, retried).await;
    worker.kill().await;
    let before = scene.stub.count();
    let worker = Worker::start(&scene.config).await;
    records.await_entries(jobs.len(), PATIENCE).await;
    assert_eq!(records.ended("refused", "opted_out").await, jobs.len());
    assert_eq!(scene.stub.count(), before);
    worker.stop().await;
    scene.end().await;
}

/// F5-24: texts that PostgreSQL cannot hold, between jobs of others.
#[tokio::test]
async fn texts_that_a_database_cannot_hold_stop_nobody_else() {
    let (scene, database) = Scene::with_database("texts").await;
    let records = Records::of(database.pool());
    let worker = Worker::start(&scene.config).await;
    let many = "a\u{301}".repeat(10_000);
    let strange = [
        (
            "campaign_id",
            "spring\u{0}".to_owned(),
            Some("invalid_campaign_id"),
        ),
        ("batch_id", "\u{0}".to_owned(), Some("invalid_batch_id")),
        ("to", "+447700900001\u{0}".to_owned(), Some("invalid_to")),
        ("from", "Acme\u{0}".to_owned(), Some("invalid_from")),
        ("category", "\u{0}".to_owned(), Some("invalid_category")),
        ("campaign_id", "\u{feff}spring".to_owned(), None),
        // Nobody could pause or cancel these.
        ("campaign_id", many.clone(), Some("invalid_campaign_id")),
        ("journey_id", many.clone(), Some("invalid_journey_id")),
        ("body", many, None),
    ];
    let mut offers = Vec::new();
    for (place, (field, value, _)) in strange.iter().enumerate() {
        let offer = Offer::marketing(ACCOUNT, format!("strange-{place}"));
        offers.push(offer.with(field, value.clone()));
        offers.push(Offer::marketing(ACCOUNT, format!("plain-{place}")));
    }
    // These wait in the table, too.
    let soon = (jiff::Timestamp::now() + Duration::from_secs(2)).to_string();
    let later = Offer::marketing(ACCOUNT, "later").with("campaign_id", "\u{feff}é".repeat(200));
    offers.push(later.with("not_before", soon));
    scene.publisher().await.publish_all(&offers).await;
    records.await_entries(offers.len(), PATIENCE).await;
    for (place, (field, _, reason)) in strange.iter().enumerate() {
        let entry = records
            .entries(ACCOUNT, &format!("strange-{place}"))
            .await
            .remove(0);
        assert_eq!(entry.reason.as_deref(), *reason, "{field}, {place}");
    }
    let refused = strange
        .iter()
        .filter(|(.., reason)| reason.is_some())
        .count();
    let went = offers.len() - refused;
    let all = async || scene.stub.distinct() == went;
    eventually("all others have gone", PATIENCE, all).await;
    worker.stop().await;
    scene.end().await;
}
