//! A large file, runs that are killed, a broker that goes away.
//!
//! Each test prints its figures in one line that begins with `figure:`.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::time::sleep;

use super::desk::{Desk, ended, recipient, rows};
use crate::support::rabbit::Rabbit;
use crate::support::worker::{Worker, WorkerConfig};
use crate::support::{eventually, heavy};

/// Rows that may be queued a second time after a run was killed.
const WINDOW: usize = 2_000;

const MEBIBYTE: u64 = 1024 * 1024;

/// The most resident memory that a process has had so far; nothing once it has ended.
fn peak_memory(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kilobytes = line.split_whitespace().nth(1)?;
    Some(kilobytes.parse::<u64>().ok()? * 1024)
}

fn write_million(path: &Path) {
    let mut file = BufWriter::new(File::create(path).unwrap());
    writeln!(file, "to,body,table").unwrap();
    for number in 0..1_000_000 {
        let to = recipient(number);
        writeln!(file, "{to},\"Your table is booked, see you at 7\",{number}").unwrap();
    }
    file.into_inner().unwrap();
}

/// A million rows: all stored, in little memory, and only once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_million_rows_need_little_memory_and_are_queued_once() {
    // Of its own: a million messages are much for a broker that others use.
    let rabbit = Rabbit::start().await;
    let _alone = heavy().await;
    let desk = Desk::on("million", rabbit.url());
    let file = desk.place("contacts.csv");
    write_million(&file);
    let child = desk.start("contacts.csv", &["--json"]);
    let pid = child.id().unwrap();
    let watch = tokio::spawn(async move {
        let mut peak = 0;
        while let Some(memory) = peak_memory(pid) {
            peak = memory;
            sleep(Duration::from_millis(20)).await;
        }
        peak
    });
    let run = ended(child).await;
    let peak = watch.await.unwrap();
    let report = run.json();
    println!(
        "figure: enqueue_million seconds={} rows_per_s={} peak_rss_mib={}",
        report["seconds"],
        report["rows_per_second"],
        peak / MEBIBYTE
    );
    assert_eq!(
        (run.code, &report["queued"]),
        (0, &json!(1_000_000)),
        "{run:?}"
    );
    assert_eq!(report["rows"], 1_000_000);
    assert!(peak > 0 && peak < 64 * MEBIBYTE, "{peak} bytes");
    assert_eq!(desk.queued("marketing").await, 1_000_000);
    let again = desk.run(&file, &["--json"]).await;
    assert_eq!(again.json()["status"], "already_queued", "{again:?}");
    assert_eq!(desk.queued("marketing").await, 1_000_000);
}

/// Runs killed anywhere, then resumed: every row is queued, and sent once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_killed_runs_are_all_sent_and_sent_once() {
    const ROWS: usize = 20_000;
    const KILLS: usize = 4;
    let _alone = heavy().await;
    let desk = Desk::new("killed");
    let mut content = rows(ROWS / 2);
    // Bad rows and repeated recipients on the way must not shift anything.
    content.push_str("{\"to\":\"x\",\"body\":\"y\"}\n");
    content.push_str(&rows(10));
    content.push_str(&rows(ROWS)[rows(ROWS / 2).len()..]);
    let file = desk.file("rows.jsonl", content);
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    let mut kills: Vec<u64> = (0..KILLS).map(|_| random.u64(500..16_000)).collect();
    kills.sort_unstable();
    println!("figure: enqueue_killed seed={seed} at_lines={kills:?}");
    for line in kills {
        if desk.confirmed_line(&file) < line {
            let more = ["--resume", "--origin", "api"];
            let run = desk.run_until(&file, &more, line, "KILL").await;
            assert_eq!(run.code, -1, "it was killed: {run:?}");
        }
    }
    let run = desk
        .run(&file, &["--resume", "--json", "--origin", "api"])
        .await;
    let report = run.json();
    assert_eq!(run.code, 3, "{run:?}");
    let good = report["queued"].as_u64().unwrap() + report["already_queued"].as_u64().unwrap();
    assert_eq!(good, ROWS as u64, "{report}");
    assert_eq!(
        (&report["duplicates"], &report["rejected"]),
        (&json!(10), &json!(1))
    );

    let messages = desk.queued("transactional").await;
    let twice = messages - ROWS;
    let record = desk.place("accepted.jsonl");
    let config = WorkerConfig::new(&desk.prefix)
        .set("LANES__BUDGET_PER_SECOND", 1_000_000)
        .set(
            "CARRIERS__DEFAULT__SANDBOX_RECORD_FILE",
            record.to_str().unwrap(),
        );
    let worker = Worker::start(&config).await;
    let accepted = || std::fs::read_to_string(&record).map_or(0, |text| text.lines().count());
    eventually("all is sent", Duration::from_secs(120), async || {
        let delivered = worker.count("lanekeeper_deliveries_total", &[]).await;
        delivered >= messages as u64 && accepted() >= ROWS
    })
    .await;
    worker.stop().await;
    let record = std::fs::read_to_string(&record).unwrap();
    let id =
        |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].to_string();
    let sent: Vec<String> = record.lines().map(id).collect();
    let distinct: HashSet<&String> = sent.iter().collect();
    println!(
        "figure: enqueue_killed rows={ROWS} kills={KILLS} queued_twice={twice} sent={}",
        sent.len()
    );
    assert!(twice <= KILLS * WINDOW, "{twice} rows were queued twice");
    assert_eq!((sent.len(), distinct.len()), (ROWS, ROWS));
    desk.end().await;
}

/// The broker dies half-way and comes back too late: the run says where it stopped, and the next
/// one goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_broker_is_gone_can_be_resumed() {
    let mut rabbit = Rabbit::start().await;
    let _alone = heavy().await;
    let desk = Desk::on("gone", rabbit.url());
    let file = desk.file("rows.jsonl", rows(100_000));
    let run = desk.start("rows.jsonl", &["--json"]);
    eventually("it is under way", Duration::from_secs(60), async || {
        desk.confirmed_line(&file) >= 2_000
    })
    .await;
    rabbit.kill();
    let lost = Instant::now();
    let run = ended(run).await;
    let waited = lost.elapsed();
    let report = run.json();
    let line = desk.confirmed_line(&file);
    assert_eq!(
        (run.code, &report["complete_to_line"]),
        (1, &json!(line)),
        "{run:?}"
    );
    assert!(waited > Duration::from_secs(25), "{waited:?}");
    assert!(
        report["next"].as_str().unwrap().contains("--resume"),
        "{report}"
    );
    let figures = [
        "queued",
        "already_queued",
        "duplicates",
        "rejected",
        "not_queued",
    ];
    let sum: u64 = figures
        .iter()
        .map(|name| report[name].as_u64().unwrap())
        .sum();
    assert_eq!(report["rows"], sum, "{report}");
    rabbit.restart().await;
    let run = desk.run(&file, &["--resume", "--json"]).await;
    let report = run.json();
    assert_eq!((run.code, &report["rows"]), (0, &json!(100_000)), "{run:?}");
    assert_eq!(report["already_queued"], line, "{report}");
    let messages = desk.queued("marketing").await;
    println!(
        "figure: enqueue_broker_gone stopped_at_line={line} after_s={} queued_twice={}",
        waited.as_secs(),
        messages - 100_000
    );
    assert!(messages - 100_000 <= WINDOW, "{messages} messages");
}
