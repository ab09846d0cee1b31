//! `lanekeeper enqueue` on a real broker.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use clap::Parser;
use lanekeeper::cli::enqueue::{Args, EnqueueError, Report, queue_file};
use lanekeeper::intake::AmqpOptions;
use lapin::options::BasicGetOptions;

use crate::support::queues::Queues;
use crate::support::rabbit::{Rabbit, connection};
use crate::support::{amqp_url, unique_prefix};

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    enqueue: Args,
}

const USUAL: [&str; 8] = [
    "--account",
    "acme",
    "--channel",
    "sms",
    "--origin",
    "campaign",
    "--batch",
    "spring",
];

fn options(url: &str) -> AmqpOptions {
    let mut options = AmqpOptions::new(url);
    options.prefix = unique_prefix("enqueue");
    options
}

/// Runs the command on a file of this content; gives its report and what it says of bad rows.
async fn enqueue(
    options: &AmqpOptions,
    content: &str,
    more: &[&str],
) -> (Result<Report, EnqueueError>, String) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), content).unwrap();
    enqueue_file(options, file.path(), more).await
}

async fn enqueue_file(
    options: &AmqpOptions,
    file: &Path,
    more: &[&str],
) -> (Result<Report, EnqueueError>, String) {
    let line = ["enqueue", file.to_str().unwrap()];
    let cli = Cli::try_parse_from([&line[..], &USUAL, more].concat()).unwrap();
    let mut errors = Vec::new();
    let report = queue_file(&cli.enqueue, options.clone(), &mut errors).await;
    (report, String::from_utf8(errors).unwrap())
}

/// The jobs in a queue, taken out of it.
async fn jobs_in(options: &AmqpOptions, suffix: &str) -> Vec<serde_json::Value> {
    let connection = connection(&options.url).await;
    let channel = connection.create_channel().await.unwrap();
    let queue = format!("{}.{suffix}", options.prefix);
    let get = BasicGetOptions { no_ack: true };
    let mut jobs = Vec::new();
    while let Some(message) = channel.basic_get(queue.as_str().into(), get).await.unwrap() {
        assert_eq!(message.properties.delivery_mode(), &Some(2));
        jobs.push(serde_json::from_slice(&message.data).unwrap());
    }
    jobs
}

fn rows(count: usize) -> String {
    let mut rows = String::new();
    for number in 0..count {
        let to = 900_000 + number % 1_000;
        writeln!(rows, r#"{{"to":"+447700{to}","body":"message {number}"}}"#).unwrap();
    }
    rows
}

#[tokio::test]
async fn good_rows_are_queued_and_bad_ones_named() {
    let options = options(&amqp_url());
    let content = "\u{feff}{\"to\":\"+44 7700 900123\",\"body\":\"x\"}\r\n\
                   \n\
                   not json\n\
                   {\"to\":\"S3NTINEL\",\"body\":\"x\"}\n\
                   {\"to\":\"+447700900124\",\"body\":\"x\"}";
    let (report, errors) = enqueue(&options, content, &["--campaign-id", "c-1"]).await;
    let report = report.unwrap();
    assert_eq!((report.queued, report.rejected), (2, 2));
    assert_eq!(report.exit_code(), 3);
    let text = report.to_string();
    let destination = format!("queued 2 to {}.send at ", options.prefix);
    assert!(text.starts_with(&destination), "{text}");
    assert!(
        text.ends_with(", rejected 2") && !text.contains('@'),
        "{text}"
    );
    let lines: Vec<_> = errors.lines().collect();
    assert!(lines[0].starts_with("line 3: row: "), "{errors}");
    assert!(lines[1].starts_with("line 4: to: "), "{errors}");
    assert!(!errors.contains("S3NTINEL"));
    let jobs = jobs_in(&options, "marketing").await;
    let ids: Vec<_> = jobs.iter().map(|job| job["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["spring-1", "spring-5"]);
    assert_eq!(jobs[0]["campaign_id"], "c-1");
    assert!(jobs[0]["enqueued_at"].as_str().unwrap().ends_with('Z'));
    Queues::connect(&options.url, &options.prefix)
        .await
        .remove()
        .await;
}

#[tokio::test]
async fn of_an_input_that_is_no_json_lines_nothing_is_queued() {
    let options = options(&amqp_url());
    let csv = format!("to,body\na,b\nc,d\n{}", rows(2_000));
    let (report, errors) = enqueue(&options, &csv, &[]).await;
    let report = report.unwrap();
    assert_eq!((report.queued, report.exit_code()), (0, 2), "{errors}");
    assert_eq!(report.mistaken, Some("this looks like CSV"));
    let jobs = jobs_in(&options, "marketing").await;
    assert_eq!(jobs, Vec::<serde_json::Value>::new());
    Queues::connect(&options.url, &options.prefix)
        .await
        .remove()
        .await;
}

#[tokio::test]
async fn every_row_of_a_long_file_is_stored_once_with_an_id_of_its_own() {
    let options = options(&amqp_url());
    let (report, errors) = enqueue(&options, &rows(5_000), &[]).await;
    let report = report.unwrap();
    assert_eq!((report.queued, report.exit_code()), (5_000, 0), "{errors}");
    let jobs = jobs_in(&options, "marketing").await;
    let ids: HashSet<_> = jobs.iter().map(|job| job["id"].to_string()).collect();
    assert_eq!((jobs.len(), ids.len()), (5_000, 5_000));
    Queues::connect(&options.url, &options.prefix)
        .await
        .remove()
        .await;
}

#[tokio::test]
async fn the_same_file_again_makes_the_same_jobs() {
    let options = options(&amqp_url());
    let mut seen = Vec::new();
    for _ in 0..2 {
        enqueue(&options, &rows(3), &["--priority", "high"])
            .await
            .0
            .unwrap();
        let jobs = jobs_in(&options, "transactional").await;
        seen.push(
            jobs.iter()
                .map(|job| job["id"].to_string())
                .collect::<Vec<_>>(),
        );
    }
    assert_eq!(seen[0].len(), 3);
    assert_eq!(seen[0], seen[1]);
    Queues::connect(&options.url, &options.prefix)
        .await
        .remove()
        .await;
}

#[tokio::test]
async fn without_a_broker_or_a_file_nothing_is_done() {
    let (report, _) = enqueue(&options("amqp://u:S3NTINEL@127.0.0.1:1"), &rows(1), &[]).await;
    let text = report.unwrap_err().to_string();
    assert!(
        text.contains("127.0.0.1:1")
            && text.ends_with("`lanekeeper check` says what is reachable")
            && !text.contains("S3NTINEL"),
        "{text}"
    );
    let missing = Path::new("/nowhere/rows.jsonl");
    let (report, _) = enqueue_file(&options(&amqp_url()), missing, &[]).await;
    let error = report.unwrap_err();
    assert!(matches!(error, EnqueueError::Open { .. }));
    let chain = format!("{:#}", anyhow::Error::from(error));
    assert_eq!(chain.matches("No such file").count(), 1, "{chain}");
    let directory = std::env::temp_dir();
    let (report, _) = enqueue_file(&options(&amqp_url()), &directory, &[]).await;
    assert!(report.unwrap_err().to_string().contains("is a directory"));
}

#[test]
fn wrong_arguments_are_explained() {
    let with = |place: usize, value: &'static str| {
        let mut arguments = USUAL;
        arguments[place] = value;
        let all = [&["enqueue", "-"][..], &arguments].concat();
        Cli::try_parse_from(all)
            .err()
            .map(|error| error.to_string())
    };
    assert_eq!(with(1, "acme"), None);
    assert!(
        with(1, "a.b")
            .unwrap()
            .contains("expected 1 to 64 characters")
    );
    assert!(with(3, "fax").unwrap().contains("sms, whatsapp"));
    assert!(with(5, "me").unwrap().contains("api, campaign, journey"));
    assert!(
        with(7, "a b")
            .unwrap()
            .contains("expected 1 to 107 characters")
    );
}

#[tokio::test]
async fn a_broker_that_takes_nothing_for_a_while_gets_every_row_in_the_end() {
    let rabbit = Rabbit::start().await;
    let mut options = options(&rabbit.url());
    options.confirm_timeout = Duration::from_millis(500);
    rabbit.raise_memory_alarm().await;
    let content = rows(1_500);
    let (enqueued, ()) = tokio::join!(enqueue(&options, &content, &[]), async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        rabbit.clear_memory_alarm().await;
    });
    let report = enqueued.0.unwrap();
    assert_eq!((report.queued, report.exit_code()), (1_500, 0), "{report}");
    let jobs = jobs_in(&options, "marketing").await;
    let ids: HashSet<_> = jobs.iter().map(|job| job["id"].to_string()).collect();
    assert_eq!(ids.len(), 1_500);
}
