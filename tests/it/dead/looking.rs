//! `list` and `show`: they show everything, and change nothing.

use super::{HOUR, Yard, column, headers, job, references};
use crate::support::rabbit::connection;
use crate::support::worker::{Worker, WorkerConfig};
use crate::support::{amqp_url, eventually};
use lapin::options::BasicPublishOptions;
use lapin::types::AMQPValue;

#[tokio::test]
async fn what_a_worker_buries_is_listed_with_its_reason_and_age() {
    let yard = Yard::new("dead-worker").await;
    let worker = Worker::start(&WorkerConfig::new(&yard.prefix)).await;
    let too_long = format!(r#"{{"id":"long","body":"{}"}}"#, "x".repeat(300 * 1024));
    let bodies = [
        "hello",
        "[1]",
        r#"{"id":"no-account","channel":"sms"}"#,
        r#"{"id":"a b","account_id":"acme","channel":"sms"}"#,
        r#"{"id":"twice","id":"twice","account_id":"acme","channel":"sms"}"#,
        &too_long,
    ];
    for body in bodies {
        let exchange = format!("{}.send", yard.prefix);
        let confirm = yard.channel.basic_publish(
            exchange.into(),
            "transactional.acme".into(),
            BasicPublishOptions::default(),
            body.as_bytes(),
            headers(&[]),
        );
        confirm.await.unwrap().await.unwrap();
    }
    yard.holds("dead", bodies.len()).await;
    worker.stop().await;
    let lines = yard.list(&[]).await;
    assert_eq!(column(&lines, "reason"), ["undecodable"; 6]);
    let mut ids = column(&lines, "id");
    ids.sort_unstable();
    assert_eq!(ids, ["-", "-", "a b", "long", "no-account", "twice"]);
    for line in &lines {
        assert!(line["age_s"].as_u64().unwrap() < 120, "{line}");
        assert!(!line["detail"].as_str().unwrap().is_empty(), "{line}");
    }
    let (table, _) = yard.run(&["list"], 0).await;
    assert!(table.starts_with("REFERENCE"), "{table}");
    assert!(table.ends_with("        6  undecodable\n"), "{table}");
    assert!(
        table.lines().all(|line| line.chars().count() <= 120),
        "{table}"
    );
    yard.end().await;
}

#[tokio::test]
async fn the_order_is_the_queues_and_nothing_is_taken() {
    let yard = Yard::new("dead-order").await;
    // More than one consumer may hold at first.
    yard.fill(1_000, |_| "undecodable").await;
    let wanted: Vec<_> = (0..1_000).map(|number| format!("j-{number}")).collect();
    for _ in 0..3 {
        let lines = yard.list(&["--limit", "5000"]).await;
        assert_eq!(column(&lines, "id"), wanted);
    }
    let taken = yard.take_all("dead").await;
    let bodies: Vec<_> = taken.into_iter().map(|taken| taken.body).collect();
    let jobs: Vec<_> = wanted.iter().map(|id| job(id)).collect();
    assert_eq!(bodies, jobs);
    yard.end().await;
}

#[tokio::test]
async fn reason_age_id_and_limit_choose() {
    let yard = Yard::new("dead-filters").await;
    yard.bury(job("old"), "undecodable", 3 * HOUR).await;
    yard.bury(job("new"), "undecodable", 0).await;
    yard.bury(job("other"), "elsewhere", HOUR / 2).await;
    yard.put(job("ageless"), headers(&[])).await;
    let ids = async |arguments: &[&str]| {
        let lines = yard.list(arguments).await;
        column(&lines, "id").join(" ")
    };
    assert_eq!(ids(&[]).await, "old new other ageless");
    assert_eq!(ids(&["--reason", "undecodable"]).await, "old new");
    assert_eq!(ids(&["--older-than", "1h"]).await, "old");
    assert_eq!(ids(&["--newer-than", "1h"]).await, "new other");
    assert_eq!(
        ids(&["--newer-than", "1h", "--older-than", "10m"]).await,
        "other"
    );
    assert_eq!(ids(&["--id", "ageless"]).await, "ageless");
    assert_eq!(ids(&["--limit", "1"]).await, "old");
    let (table, _) = yard.run(&["list", "--limit", "1"], 0).await;
    assert!(table.contains("3 more"), "{table}");
    assert!(table.contains("(no reason)"), "{table}");
    let (table, _) = yard.run(&["list", "--older-than", "1h"], 0).await;
    assert!(table.contains("1 of unknown age left out"), "{table}");
    let (table, _) = yard.run(&["list", "--id", "nobody"], 0).await;
    assert_eq!(table, "None of 4 dead messages matches.\n");
    let (table, _) = yard.run(&["list"], 0).await;
    assert!(table.contains("unknown"), "{table}");
    yard.end().await;
}

#[tokio::test]
async fn an_empty_queue_and_a_missing_one_are_told_apart() {
    let mut yard = Yard::new("dead-empty").await;
    let (out, _) = yard.run(&["list"], 0).await;
    assert_eq!(out, "No dead messages: every message could be read.\n");
    assert_eq!(yard.list(&[]).await.len(), 0);
    let prefix = std::mem::replace(&mut yard.prefix, "t-nobody-ever".to_owned());
    let (_, err) = yard.run(&["list"], 1).await;
    assert!(err.contains("no worker has run under this prefix"), "{err}");
    yard.prefix = prefix;
    yard.end().await;
}

#[tokio::test]
async fn hostile_texts_reach_no_terminal() {
    let yard = Yard::new("dead-hostile").await;
    let hostile = "\u{1b}[2J\u{9b}31m\u{202e}\r\nfake  row\u{7}";
    let properties = headers(&[
        ("x-reason", hostile),
        ("x-detail", hostile),
        ("x-\u{1b}[1m", hostile),
    ]);
    let properties = properties
        .with_message_id(hostile.into())
        .with_timestamp(u64::MAX);
    let body = serde_json::json!({"id": hostile, "account_id": hostile, "body": "\u{9b}0m"});
    yard.put(body.to_string(), properties).await;
    let reference = references(&yard).await.remove(0);
    for arguments in [
        &["list"][..],
        &["list", "--json"],
        &["show", &reference],
        &["show", &reference, "--body"],
        &["show", &reference, "--json", "--body"],
        &["replay", "--all"],
    ] {
        let output = yard.output(arguments).await;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(text).unwrap();
        let harmful = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!text.contains(harmful), "{arguments:?}: {text:?}");
        assert!(!text.contains("\nfake"), "{arguments:?}: {text}");
    }
    let lines = yard.list(&[]).await;
    assert_eq!(lines[0]["reason"], hostile, "a script gets what was there");
    assert!(lines[0]["since"].is_null());
    yard.end().await;
}

#[tokio::test]
async fn show_tells_all_and_the_body_only_when_asked() {
    let yard = Yard::new("dead-show").await;
    let body = r#"{"id":"a b","account_id":"acme","channel":"sms","to":"S3NTINEL"}"#;
    yard.bury(body, "undecodable", HOUR).await;
    yard.bury(b"\xff\x00\x1b[2J", "undecodable", HOUR).await;
    let [text, binary]: [String; 2] = references(&yard).await.try_into().unwrap();
    let (out, _) = yard.run(&["show", &text[..6]], 0).await;
    for part in [
        &text,
        "`id` is missing",
        "acme",
        "still undecodable: `id`",
        "1h",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    assert!(!out.contains("S3NTINEL"), "{out}");
    let (by_id, _) = yard.run(&["show", "a b", "--body"], 0).await;
    assert!(by_id.contains("  \"to\": \"S3NTINEL\"\n}"), "{by_id}");
    let (json, _) = yard.run(&["show", &text, "--json", "--body"], 0).await;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["body"], body);
    let raw = yard.output(&["show", &binary, "--raw"]).await;
    assert_eq!(raw.stdout, b"\xff\x00\x1b[2J");
    let (json, _) = yard.run(&["show", &binary, "--json", "--body"], 0).await;
    assert!(json.contains(r#""body_hex":"ff001b5b324a""#), "{json}");
    let (_, err) = yard.run(&["show", "ffffffffffff"], 3).await;
    assert!(err.contains("dead list"), "{err}");
    let (_, err) = yard.run(&["show", &text[..5]], 3).await;
    assert!(err.contains("6 digits"), "{err}");
    yard.end().await;
}

/// The broker drops what was returned 20 times, from 4.0 on.
#[tokio::test]
async fn twenty_five_looks_keep_everything_and_return_nothing_too_often() {
    let yard = Yard::new("dead-often").await;
    for number in 0..70 {
        let table = headers(&[("x-reason", "undecodable"), ("x-death", "bad")]);
        let body = job(&format!("j-{number}"));
        yard.put(body, table.with_timestamp(1_700_000_000)).await;
    }
    let first = references(&yard).await;
    let mut most = 0;
    for _ in 0..25 {
        let lines = yard.list(&["--limit", "1000"]).await;
        assert_eq!(
            column(&lines, "reference"),
            first,
            "all, and in their order"
        );
        let returns = lines.iter().map(|line| line["returns"].as_u64().unwrap());
        most = most.max(returns.max().unwrap());
    }
    assert_eq!(most, 10, "moved when it had returned ten times");
    let taken = yard.take_all("dead").await;
    assert_eq!(taken.len(), 70);
    for taken in taken {
        assert_eq!(taken.properties.timestamp(), &Some(1_700_000_000));
        let headers = taken.properties.headers().as_ref().unwrap().inner();
        assert_eq!(
            headers.get("x-reason"),
            Some(&AMQPValue::LongString("undecodable".into()))
        );
        assert!(!headers.contains_key("x-death"), "it came from outside");
    }
    yard.end().await;
}

#[tokio::test]
async fn two_that_look_at_once_both_see_everything() {
    let yard = Yard::new("dead-two").await;
    for number in 0..100 {
        yard.bury(job(&format!("j-{number}")), "undecodable", 5)
            .await;
    }
    let looks = (0..4).map(|_| yard.list(&["--limit", "1000"]));
    for lines in futures_util::future::join_all(looks).await {
        assert_eq!(lines.len(), 100);
    }
    yard.end().await;
}

/// Whatever a killed reader held is there for the next one.
#[tokio::test]
async fn a_closed_connection_gives_everything_back() {
    let yard = Yard::new("dead-closed").await;
    yard.bury(job("j-1"), "undecodable", 5).await;
    let other = connection(&amqp_url()).await;
    let channel = other.create_channel().await.unwrap();
    let queue = format!("{}.dead", yard.prefix);
    let held = channel.basic_get(queue.into(), lapin::options::BasicGetOptions::default());
    assert!(held.await.unwrap().is_some());
    assert_eq!(yard.list(&[]).await.len(), 0);
    other.close(200, "".into()).await.unwrap();
    eventually("the message is back", super::LIMIT, async || {
        yard.list(&[]).await.len() == 1
    })
    .await;
    yard.end().await;
}
