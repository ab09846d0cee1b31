//! A million rows.

use std::fmt::Write as _;
use std::time::Instant;

use super::desk::{CSV, Desk, figures};
use super::rows::recipient;
use crate::support::heavy;
use crate::support::rabbit::Rabbit;

/// The real number of rows is for those who have the time.
fn row_count() -> usize {
    let rows = std::env::var("LANEKEEPER_TEST_BATCH_ROWS");
    let rows = rows.ok().and_then(|rows| rows.parse().ok());
    rows.unwrap_or(200_000)
}

const MEBIBYTE: u64 = 1024 * 1024;

/// One row in a hundred is bad.
fn million() -> String {
    let mut rows = "to,body,table\n".to_owned();
    for number in 0..row_count() {
        let to = if number % 100 == 99 {
            "0000".to_owned()
        } else {
            recipient(number)
        };
        writeln!(rows, "{to},\"Your table is booked, see you at 7\",{number}").unwrap();
    }
    rows
}

/// All good rows are stored, in little memory, each bad one is listed, and none is stored twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_million_rows_need_little_memory_and_are_queued_once() {
    // Of its own: a million messages are much for a broker that others use.
    let rabbit = Rabbit::start().await;
    let _alone = heavy().await;
    let desk = Desk::with("api-million", rabbit.url(), |config| config).await;
    let rows = million();
    let began = Instant::now();
    let answer = desk.upload("batch_id=million", CSV, rows.clone()).await;
    let took = began.elapsed();
    let peak = desk.api.process.peak_rss_bytes();
    #[expect(clippy::cast_precision_loss, reason = "a million is exact")]
    let rate = row_count() as f64 / took.as_secs_f64();
    println!(
        "figure: batch_million seconds={:.1} rows_per_s={rate:.0} peak_rss_mib={}",
        took.as_secs_f64(),
        peak / MEBIBYTE
    );
    let good = row_count() as u64 / 100 * 99;
    let bad = row_count() as u64 / 100;
    assert_eq!(
        figures(&answer.body["data"]),
        [row_count() as u64, good, 0, bad],
        "{answer:?}"
    );
    assert!(peak > 0 && peak < 128 * MEBIBYTE, "{peak} bytes");
    assert_eq!(desk.queued("marketing").await as u64, good);
    let expected: Vec<_> = (1..=bad)
        .map(|one| (one * 100 + 1, "to".to_owned()))
        .collect();
    assert_eq!(desk.rejections("million", 1_000).await, expected);
    let again = desk.upload("batch_id=million", CSV, rows.clone()).await;
    assert_eq!(again.body["data"]["already_queued"], good, "{again:?}");
    assert_eq!(desk.queued("marketing").await as u64, good);
    by_command(&rows, rabbit.url(), good).await;
}

/// The same file by `lanekeeper enqueue`, to compare.
async fn by_command(rows: &str, amqp: String, good: u64) {
    let desk = crate::enqueue::Desk::on("million", amqp);
    let file = desk.file("contacts.csv", rows);
    let run = desk.run(&file, &["--json", "--max-errors", "0"]).await;
    let report = run.json();
    println!(
        "figure: batch_million_by_command seconds={} rows_per_s={}",
        report["seconds"], report["rows_per_second"]
    );
    assert_eq!(report["queued"], good, "{report}");
}
