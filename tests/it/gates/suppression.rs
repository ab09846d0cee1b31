//! Who counts as opted out: exactly those who are, in whatever spelling a job names them.

use std::time::Duration;

use crate::support::jobs::Offer;
use crate::support::records::Records;
use crate::support::scene::{ACCOUNT, Scene};
use crate::support::worker::Worker;

const PATIENCE: Duration = Duration::from_secs(20);

/// Opted out, and of what.
const OPTED_OUT: [(&str, &str); 7] = [
    // Parts of a number that is written to, and a longer one.
    ("+4860060049", "all"),
    ("+600600491", "all"),
    ("+486006004910", "all"),
    ("+447700900001", "all"),
    ("a@example.org", "email"),
    ("a@xn--exmple-cua.org", "all"),
    ("+447700900002", "whatsapp"),
];

/// Channel, recipient, and whether it is refused as opted out. F5-11: no part of a number is that number.
const JOBS: [(&str, &str, bool); 13] = [
    ("sms", "+48600600491", false),
    ("sms", "+447700900001", true),
    ("sms", "+44 7700 900001", true),
    ("whatsapp", "+44 (7700) 900-001", true),
    ("sms", "+447700900002", false),
    ("whatsapp", "+447700900002", true),
    ("email", "a@example.org", true),
    ("email", " A@Example.ORG ", true),
    ("email", "a@example.org.", true),
    ("email", "A@EXÄMPLE.org", true),
    ("email", "a@exa\u{308}mple.org", true),
    ("email", "aa@example.org", false),
    ("email", "a@example.org.uk", false),
];

/// Nothing but one bare address is sent to: in these nobody would recognise who has opted out.
const NO_ADDRESSES: [&str; 5] = [
    "Ann <a@example.org>",
    "mailto:a@example.org",
    "\"a\"@example.org",
    "a@exämple.org\u{200b}",
    "b@example.org, a@example.org",
];

#[tokio::test]
async fn an_opt_out_concerns_its_recipient_and_nobody_like_it() {
    let (scene, database) = Scene::with_database("exact").await;
    let records = Records::of(database.pool());
    for (recipient, scope) in OPTED_OUT {
        let row =
            format!("('{ACCOUNT}', '{recipient}', '{scope}'), ('other', '{recipient}', '{scope}')");
        let insert = format!("INSERT INTO suppressions VALUES {row}");
        records.commit(&insert).await;
    }
    // Another account's opt-outs are its own.
    records
        .commit("INSERT INTO suppressions VALUES ('other', '+48600600491', 'all')")
        .await;
    let worker = Worker::start(&scene.config).await;
    let id = |place: usize| format!("job-{place}");
    let offers: Vec<_> = JOBS
        .iter()
        .enumerate()
        .map(|(place, (channel, to, _))| {
            let offer = Offer::otp(ACCOUNT, id(place)).queued_now();
            offer.with("channel", *channel).with("to", *to)
        })
        .collect();
    scene.publisher().await.publish_all(&offers).await;
    records.await_entries(JOBS.len(), PATIENCE).await;
    for (place, (channel, to, refused)) in JOBS.iter().enumerate() {
        let entry = records.entries(ACCOUNT, &id(place)).await.remove(0);
        let expected = if *refused { Some("opted_out") } else { None };
        assert_eq!(entry.reason.as_deref(), expected, "{channel} to {to}");
        assert_eq!(scene.stub.first(&id(place)).is_none(), *refused);
    }
    let id = |place: usize| format!("no-address-{place}");
    let offers = NO_ADDRESSES.iter().enumerate().map(|(place, to)| {
        let offer = Offer::otp(ACCOUNT, id(place)).queued_now();
        offer.with("channel", "email").with("to", *to)
    });
    let offers: Vec<_> = offers.collect();
    scene.publisher().await.publish_all(&offers).await;
    records
        .await_entries(JOBS.len() + NO_ADDRESSES.len(), PATIENCE)
        .await;
    assert_eq!(
        records.ended("refused", "invalid_to").await,
        NO_ADDRESSES.len()
    );
    worker.stop().await;
    scene.end().await;
}
