//! What an operator says on the command line holds on a running worker a second later.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::sleep;

use crate::support::eventually;
use crate::support::jobs::Offer;
use crate::support::records::Records;
use crate::support::scene::{ACCOUNT, Scene};
use crate::support::worker::Worker;

const PATIENCE: Duration = Duration::from_secs(20);
const KNOWN_WITHIN: Duration = Duration::from_secs(1);

/// Runs a command, its words separated by blanks, which must succeed; gives what it prints.
async fn say(database: &str, words: &str) -> String {
    let command = Command::new(env!("CARGO_BIN_EXE_lanekeeper"))
        .args(words.split_whitespace())
        .env_clear()
        .env("LANEKEEPER__DATABASE__URL", database)
        .stdin(Stdio::null())
        .output();
    let output = command.await.unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

async fn ends_as(records: &Records, id: &str, outcome: &str, reason: &str) {
    let what = format!("{id} ends");
    let has_ended = async || !records.entries(ACCOUNT, id).await.is_empty();
    eventually(&what, PATIENCE, has_ended).await;
    let entry = records.entries(ACCOUNT, id).await.remove(0);
    let found = (entry.outcome, entry.reason.unwrap_or_default());
    assert_eq!(found, (outcome.to_owned(), reason.to_owned()), "{id}");
}

#[tokio::test]
async fn what_is_said_holds_a_second_later() {
    let (scene, database) = Scene::with_database("operator").await;
    let records = Records::of(database.pool());
    let worker = Worker::start(&scene.config).await;
    let (publisher, url) = (scene.publisher().await, database.url());
    for words in [
        "account set acme --budget 50",
        "suppression add --account acme +447700900001",
        "cap set --account acme --name daily --limit 1 --window 24h",
        "pause campaign acme spring",
    ] {
        say(url, words).await;
    }
    sleep(KNOWN_WITHIN).await;
    let to = |id: &str, to: &str| Offer::marketing(ACCOUNT, id).with("to", to);
    let spring = |id: &str, number| to(id, number).with("campaign_id", "spring");
    let offers = [
        to("opted-out", "+447700900001"),
        to("first", "+447700900002"),
        to("second", "+447700900002"),
        spring("paused", "+447700900003"),
    ];
    publisher.publish_all(&offers).await;
    ends_as(&records, "opted-out", "refused", "opted_out").await;
    ends_as(&records, "first", "dispatched", "").await;
    ends_as(&records, "second", "refused", "frequency_cap").await;
    let waits = async || records.waiting_for("paused").await == 1;
    eventually("the campaign's job waits", PATIENCE, waits).await;
    let told = say(url, "explain paused --account acme").await;
    assert!(told.contains("paused"), "{told}");

    say(url, "resume campaign acme spring").await;
    ends_as(&records, "paused", "dispatched", "").await;
    say(url, "suppression remove --account acme +447700900001").await;
    say(url, "cancel campaign acme spring").await;
    let offers = [
        to("back", "+447700900001"),
        spring("cancelled", "+447700900004"),
    ];
    publisher.publish_all(&offers).await;
    ends_as(&records, "back", "dispatched", "").await;
    ends_as(&records, "cancelled", "cancelled", "").await;
    let told = say(url, "explain opted-out --account acme").await;
    assert!(
        told.contains("opted out") || told.contains("opted_out"),
        "{told}"
    );
    assert_eq!(records.waiting().await, 0);
    worker.stop().await;
    scene.end().await;
}
