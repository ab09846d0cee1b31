//! A broker that is not there, or takes nothing; signals; a second run.

use std::time::{Duration, Instant};

use serde_json::json;

use super::desk::{Desk, ended, ids, rows};
use crate::support::eventually;
use crate::support::rabbit::Rabbit;
use crate::support::worker::signal;

const SOON: Duration = Duration::from_secs(60);

#[tokio::test]
async fn without_a_broker_or_a_file_nothing_is_done() {
    let desk = Desk::on("enqueue", "amqp://u:S3NTINEL@127.0.0.1:1".to_owned());
    let file = desk.file("rows.jsonl", rows(1));
    let run = desk.run(&file, &[]).await;
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.contains("127.0.0.1:1"), "{run:?}");
    assert!(run.stderr.contains("`lanekeeper check`"), "{run:?}");
    assert!(!run.stderr.contains("S3NTINEL"), "{run:?}");
    assert_eq!(desk.names(), ["rows.jsonl"], "no run has begun");
    let run = desk.run(&desk.place("none.csv"), &[]).await;
    assert_eq!(run.code, 2, "{run:?}");
    assert_eq!(run.stderr.matches("No such file").count(), 1, "{run:?}");
    let run = desk.run(&std::env::temp_dir(), &["--json"]).await;
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("is a directory"), "{run:?}");
    assert_eq!(run.json()["status"], "refused");
}

#[tokio::test]
async fn a_wrong_log_in_is_told_at_once() {
    let usual = crate::support::amqp_url();
    let password = usual.replace("guest:guest@", "guest:S3NTINEL@");
    let virtual_host = format!("{}/no-such-place", usual.trim_end_matches('/'));
    for (url, expected) in [
        (password, "ACCESS_REFUSED"),
        (virtual_host, "no-such-place"),
    ] {
        let desk = Desk::on("enqueue", url);
        let file = desk.file("rows.jsonl", rows(1));
        let started = Instant::now();
        let run = desk.run(&file, &[]).await;
        assert_eq!(run.code, 1, "{run:?}");
        assert!(run.stderr.contains(expected), "{run:?}");
        assert!(!run.stderr.contains("S3NTINEL"), "{run:?}");
        // Nothing was tried for the 30 seconds that a broker may take.
        assert!(started.elapsed() < Duration::from_secs(20), "{run:?}");
    }
}

#[tokio::test]
async fn a_broker_under_an_alarm_is_waited_for_and_no_second_run_begins() {
    let rabbit = Rabbit::start().await;
    let desk = Desk::on("enqueue", rabbit.url()).set("LANEKEEPER__AMQP__CONFIRM_TIMEOUT_MS", "500");
    let file = desk.file("rows.jsonl", rows(1_500));
    rabbit.raise_memory_alarm().await;
    let first = desk.start(file.to_str().unwrap(), &["--json"]);
    eventually("the first run has begun", SOON, async || {
        desk.state(&file).is_some()
    })
    .await;
    for choice in [&[][..], &["--resume"], &["--restart"]] {
        let second = desk.run(&file, choice).await;
        assert_eq!(second.code, 4, "{second:?}");
        assert!(second.stderr.contains("another run"), "{second:?}");
    }
    rabbit.clear_memory_alarm().await;
    let first = ended(first).await;
    assert_eq!((first.code, &first.json()["queued"]), (0, &json!(1_500)));
    let mut jobs = desk.take_jobs("marketing").await;
    jobs.sort_by_key(|job| job["id"].to_string());
    jobs.dedup_by_key(|job| job["id"].to_string());
    assert_eq!(jobs.len(), 1_500);
}

#[tokio::test]
async fn a_signal_does_not_wait_for_a_broker_that_takes_nothing() {
    let rabbit = Rabbit::start().await;
    let desk = Desk::on("enqueue", rabbit.url()).set("LANEKEEPER__AMQP__CONFIRM_TIMEOUT_MS", "500");
    let file = desk.file("rows.jsonl", rows(10));
    rabbit.raise_memory_alarm().await;
    let run = desk.start(file.to_str().unwrap(), &["--json"]);
    // A connection is blocked only once it has published something.
    eventually("the run has published", SOON, async || {
        let connections = rabbit.list(&["list_connections", "state"]).await;
        connections.iter().flatten().any(|state| state == "blocked")
    })
    .await;
    let asked = Instant::now();
    signal(run.id().unwrap(), "INT");
    let run = ended(run).await;
    assert!(asked.elapsed() < Duration::from_secs(15), "{run:?}");
    let report = run.json();
    assert_eq!((run.code, &report["status"]), (130, &json!("stopped")));
    // As many as it had read by then: one chunk, which the broker had been given.
    assert!(report["rows"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(report["not_queued"], report["rows"], "{report}");
    rabbit.clear_memory_alarm().await;
    let run = desk.run(&file, &["--resume", "--json"]).await;
    assert_eq!((run.code, &run.json()["queued"]), (0, &json!(10)));
}

#[tokio::test]
async fn a_run_that_is_told_to_stop_finishes_what_it_has_begun() {
    let desk = Desk::new("enqueue");
    let file = desk.file("rows.jsonl", rows(30_000));
    let run = desk.run_until(&file, &[], 3_000, "TERM").await;
    assert_eq!(run.code, 143, "{run:?}");
    let line = desk.confirmed_line(&file);
    assert!((3_000..30_000).contains(&line), "{line}: {run:?}");
    for part in [
        format!("complete up to line {line}\n"),
        format!("--resume goes on after line {line}"),
    ] {
        assert!(run.stdout.contains(&part), "{part}: {run:?}");
    }
    assert!(run.stderr.contains("stopped by SIGTERM"), "{run:?}");
    let run = desk.run(&file, &["--resume", "--json"]).await;
    let report = run.json();
    assert_eq!((run.code, &report["rows"]), (0, &json!(30_000)));
    assert_eq!(report["already_queued"], line, "{report}");
    // Nothing was on its way when the first run ended, so nothing is there twice.
    assert_eq!(desk.queued("marketing").await, 30_000);
    desk.end().await;
}

#[tokio::test]
async fn the_same_input_again_makes_the_same_jobs() {
    let desk = Desk::new("enqueue");
    let mut seen = Vec::new();
    for _ in 0..2 {
        let run = desk.pipe(&rows(3), &["--priority", "high"]).await;
        assert_eq!(run.code, 0, "{run:?}");
        let jobs = desk.take_jobs("transactional").await;
        seen.push(
            ids(&jobs)
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>(),
        );
    }
    assert_eq!(seen[0].len(), 3);
    assert_eq!(seen[0], seen[1]);
    desk.end().await;
}
