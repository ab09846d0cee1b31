//! `replay` and `drop`: what goes is where it should be, and what stays is still there.

use std::time::Duration;

use lapin::options::{QueueBindOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable};

use super::{HOUR, LIMIT, Yard, column, headers, job, references};
use crate::support::eventually;
use crate::support::worker::{Worker, WorkerConfig};

const BROKEN: &str = r#"{"id":"broken","account_id":"acme","to":"+447700900123"}"#;

#[tokio::test]
async fn what_can_be_read_goes_back_to_its_lane_without_what_it_came_with() {
    let yard = Yard::new("dead-replay").await;
    let hostile = headers(&[
        ("x-reason", "undecodable"),
        ("x-death", "bad"),
        ("lk-attempt", "3"),
    ]);
    let hostile = hostile
        .with_expiration("3600000".into())
        .with_user_id("guest".into());
    yard.put(job("j-1"), hostile).await;
    yard.bury(BROKEN, "undecodable", 5).await;
    let refused = job("j-2").replace("+447700900123", "nobody");
    yard.bury(&refused, "undecodable", 5).await;
    let dry = yard.report(&["replay", "--all", "--dry-run"], 3).await;
    assert_eq!((&dry["matched"], &dry["done"]), (&3.into(), &0.into()));
    yard.holds("dead", 3).await;
    let (out, err) = yard.run(&["replay", "--all"], 3).await;
    assert!(
        out.starts_with("replayed 2 of 3 matched, 1 left, 1 still undecodable, 1 of them"),
        "{out}"
    );
    assert!(
        err.contains("still undecodable: `channel` is missing"),
        "{err}"
    );
    assert!(err.contains("invalid_to"), "{err}");
    let sent = yard.take_all("marketing").await;
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[0].body, job("j-1"));
    assert_eq!(sent[1].body, refused);
    for sent in &sent {
        let properties = &sent.properties;
        let names = properties
            .headers()
            .iter()
            .flatten()
            .map(|(name, _)| name.as_str());
        // This one is the broker's.
        let names: Vec<_> = names.filter(|name| *name != "x-delivery-count").collect();
        assert_eq!(names, Vec::<&str>::new());
        assert_eq!(
            (properties.expiration(), properties.user_id()),
            (&None, &None)
        );
        assert_eq!(properties.delivery_mode(), &Some(2));
    }
    assert_eq!(column(&yard.list(&[]).await, "id"), ["broken"]);
    // It falls through to the default lane, even where an account is called so.
    give_a_queue_of_its_own(&yard, "unknown").await;
    let anyway = yard.report(&["replay", "--all", "--anyway"], 0).await;
    assert_eq!(anyway["done"], 1);
    assert_eq!(yard.take_all("transactional").await[0].body, BROKEN);
    yard.holds("dead", 0).await;
    yard.end().await;
}

/// Binds a queue for one account's jobs, until the connection ends.
async fn give_a_queue_of_its_own(yard: &Yard, account: &str) {
    let queue = format!("{}.of-{account}", yard.prefix);
    let options = QueueDeclareOptions {
        exclusive: true,
        ..QueueDeclareOptions::default()
    };
    let none = FieldTable::default();
    let declared = yard
        .channel
        .queue_declare(queue.as_str().into(), options, none.clone());
    declared.await.unwrap();
    for lane in ["transactional", "marketing"] {
        let exchange = format!("{}.send", yard.prefix);
        let key = format!("{lane}.{account}");
        let options = QueueBindOptions::default();
        let queue = queue.as_str().into();
        let bound =
            yard.channel
                .queue_bind(queue, exchange.into(), key.into(), options, none.clone());
        bound.await.unwrap();
    }
}

#[tokio::test]
async fn a_repaired_message_reaches_the_carrier() {
    let yard = Yard::new("dead-repair").await;
    yard.bury(BROKEN, "undecodable", 5).await;
    let reference = references(&yard).await.remove(0);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("repair.json");
    let path = file.to_str().unwrap();
    let raw = yard.output(&["show", &reference, "--raw"]).await.stdout;
    std::fs::write(&file, &raw).unwrap();
    let repair = ["replay", &reference, "--with", path];
    let (_, err) = yard.run(&repair, 2).await;
    assert!(err.contains("`channel` is missing"), "{err}");
    std::fs::write(&file, job("broken").replace("+447700900123", "nobody")).unwrap();
    let (_, err) = yard.run(&repair, 2).await;
    assert!(err.contains("`to`: "), "{err}");
    yard.holds("dead", 1).await;
    std::fs::write(&file, job("broken") + "\n").unwrap();
    let record = directory.path().join("accepted.jsonl");
    let config = WorkerConfig::new(&yard.prefix).set(
        "CARRIERS__DEFAULT__SANDBOX_RECORD_FILE",
        record.to_str().unwrap(),
    );
    let worker = Worker::start(&config).await;
    yard.run(&repair, 0).await;
    eventually("the sandbox has it", LIMIT, async || {
        std::fs::read_to_string(&record).is_ok_and(|text| text.contains("\"id\":\"broken\""))
    })
    .await;
    yard.holds("dead", 0).await;
    worker.stop().await;
    let (_, err) = yard.run(&["replay", "--all", "--with", path], 2).await;
    assert!(err.contains("--with"), "{err}");
    yard.end().await;
}

#[tokio::test]
async fn nothing_is_chosen_by_accident() {
    let yard = Yard::new("dead-choice").await;
    yard.bury(r#"{"id":"same","a":1}"#, "undecodable", 5).await;
    yard.bury(r#"{"id":"same","a":2}"#, "undecodable", 5).await;
    for arguments in [
        &["replay"][..],
        &["drop", "--yes"],
        &["drop", "--yes", "--older-than", "1h"],
        &["drop", "--yes", "--all", "--reason", "undecodable"],
        &["drop", "--yes", "--all", "abcdef"],
        &["drop", "--yes", "--all", "--older-than", "soon"],
        &["drop", "--all"],
        &["drop", "--yes", "same"],
        &["replay", "same", "--anyway"],
    ] {
        let (_, err) = yard.run(arguments, 2).await;
        assert!(!err.is_empty(), "{arguments:?}");
    }
    let (_, err) = yard.run(&["drop", "--all"], 2).await;
    assert!(err.contains("--yes"), "{err}");
    let gone = yard.report(&["drop", "--yes", "nobody"], 3).await;
    assert_eq!(gone["not_found"][0], "nobody");
    yard.holds("dead", 2).await;
    yard.end().await;
}

#[tokio::test]
async fn what_is_dropped_is_saved_first_and_the_rest_stays() {
    let yard = Yard::new("dead-drop").await;
    yard.bury("text", "undecodable", 3 * HOUR).await;
    yard.bury(b"\xff\xfe", "undecodable", 3 * HOUR).await;
    yard.bury("new", "undecodable", 0).await;
    yard.bury("other", "elsewhere", 3 * HOUR).await;
    yard.put("ageless", headers(&[("x-reason", "undecodable")]))
        .await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("dropped.jsonl");
    let old = [
        "drop",
        "--reason",
        "undecodable",
        "--older-than",
        "1h",
        "--yes",
        "--save",
    ];
    let report = yard
        .report(&[&old[..], &[file.to_str().unwrap()]].concat(), 0)
        .await;
    assert_eq!(
        (&report["done"], &report["left"], &report["unknown_age"]),
        (&2.into(), &0.into(), &1.into())
    );
    let saved = std::fs::read_to_string(&file).unwrap();
    let saved: Vec<serde_json::Value> = saved
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(saved.len(), 2);
    assert_eq!(
        (&saved[0]["body"], &saved[1]["body_hex"]),
        (&"text".into(), &"fffe".into())
    );
    yard.holds("dead", 3).await;
    let nowhere = ["drop", "--all", "--yes", "--save", "/nowhere/at/all"];
    yard.run(&nowhere, 1).await;
    // Every write to it fails.
    yard.run(&["drop", "--all", "--yes", "--save", "/dev/full"], 1)
        .await;
    yard.holds("dead", 3).await;
    let rest = yard.report(&["drop", "--all", "--yes"], 0).await;
    assert_eq!(rest["done"], 3);
    yard.holds("dead", 0).await;
    yard.end().await;
}

#[tokio::test]
async fn one_reference_settles_every_copy_and_no_other() {
    let yard = Yard::new("dead-copies").await;
    for body in ["copy", "copy", "another"] {
        yard.bury(body, "undecodable", 5).await;
    }
    let reference = references(&yard).await.remove(0);
    let (out, _) = yard.run(&["show", &reference], 0).await;
    assert!(out.contains("copies        2"), "{out}");
    let report = yard
        .report(&["drop", &reference.to_uppercase()[..8], "--yes"], 0)
        .await;
    assert_eq!(report["done"], 2);
    assert_eq!(yard.take_all("dead").await[0].body, "another");
    yard.end().await;
}

#[tokio::test]
async fn a_message_that_was_returned_often_can_still_be_replayed() {
    let yard = Yard::new("dead-tired").await;
    let mut tired = headers(&[("x-reason", "undecodable")]);
    let mut table = tired.headers().clone().unwrap();
    table.insert("x-delivery-count".into(), AMQPValue::LongLongInt(15));
    tired = tired.with_headers(table);
    yard.put(job("j-1"), tired).await;
    let report = yard.report(&["replay", "j-1"], 0).await;
    assert_eq!(report["done"], 1);
    assert_eq!(yard.take_all("marketing").await.len(), 1);
    yard.holds("dead", 0).await;
    tokio::time::timeout(Duration::from_secs(60), yard.end())
        .await
        .unwrap();
}

#[tokio::test]
async fn of_thousands_none_comes_back_after_its_replay() {
    let yard = Yard::new("dead-many").await;
    yard.fill(5_000, |_| "undecodable").await;
    let report = yard.report(&["replay", "--all"], 0).await;
    assert_eq!(
        (&report["done"], &report["left"]),
        (&5_000.into(), &0.into())
    );
    yard.holds("marketing", 5_000).await;
    assert!(yard.list(&[]).await.is_empty());
    yard.end().await;
}

/// Each is acknowledged by itself, because the one before it stays.
#[tokio::test]
async fn what_goes_from_between_others_does_not_come_back_and_the_others_keep_their_order() {
    let yard = Yard::new("dead-between").await;
    let reason = |number| if number % 2 == 0 { "goes" } else { "stays" };
    yard.fill(3_000, reason).await;
    let report = yard.report(&["replay", "--reason", "goes"], 0).await;
    assert_eq!(report["done"], 1_500);
    let lines = yard.list(&["--limit", "5000"]).await;
    let stays: Vec<_> = (0..1_500).map(|n| format!("j-{}", 2 * n + 1)).collect();
    assert_eq!(column(&lines, "id"), stays);
    yard.holds("marketing", 1_500).await;
    yard.end().await;
}
