//! Uploads that are sent again: after their end, after a kill, at the same time.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::desk::{CSV, Desk, LIMIT, LINES, figures};
use super::rows::lines;
use crate::support::eventually;
use crate::support::heavy;
use crate::support::worker::{Worker, WorkerConfig};

/// Rows that may be queued a second time after a server was killed.
const WINDOW: usize = 2_000;

fn reason(answer: &crate::support::api::Answer) -> &str {
    answer.body["error"]["details"]["reason"]
        .as_str()
        .unwrap_or_default()
}

#[tokio::test]
async fn the_same_upload_again_queues_nothing_with_and_without_a_name() {
    let desk = Desk::new("api-again").await;
    for parameters in ["batch_id=again", "campaign_id=spring"] {
        let first = desk.upload(parameters, LINES, lines(700)).await;
        assert_eq!(first.status, 202, "{first:?}");
        let (first, id) = (&first.body["data"], &first.body["data"]["batch_id"]);
        assert_eq!(first["already_queued"], 0);
        assert_eq!(desk.take_jobs("marketing").await.len(), 700);
        let again = desk.upload(parameters, LINES, lines(700)).await;
        let again = &again.body["data"];
        assert_eq!(again["already_queued"], 700, "{again}");
        assert_eq!((figures(again), &again["batch_id"]), (figures(first), id));
        assert_eq!(desk.queued("marketing").await, 0);
    }
    // Without a name, other contents and other parameters are another batch.
    for (parameters, rows) in [("campaign_id=spring", 699), ("campaign_id=summer", 700)] {
        let other = desk.upload(parameters, LINES, lines(rows)).await;
        assert_eq!(other.body["data"]["already_queued"], 0);
        assert_eq!(desk.take_jobs("marketing").await.len(), rows);
    }
    desk.end().await;
}

#[tokio::test]
async fn a_name_stands_for_one_content_and_one_account() {
    let desk = Desk::new("api-name").await;
    assert_eq!(
        desk.upload("batch_id=name", LINES, lines(3)).await.status,
        202
    );
    let other = desk.upload("batch_id=name", LINES, lines(4)).await;
    assert_eq!(
        (other.status.as_u16(), other.code(), reason(&other)),
        (409, "CONFLICT", "other_content")
    );
    let other = desk
        .upload("batch_id=name&priority=high", LINES, lines(3))
        .await;
    assert_eq!(
        (other.status.as_u16(), reason(&other)),
        (409, "other_parameters")
    );
    let stranger = desk.key_of("stranger", &["send", "read"], "api").await;
    for path in ["name", "name/rejections"] {
        let path = format!("/api/v1/batches/{path}");
        assert_eq!(desk.api.get(&path, &stranger).await.status, 404);
    }
    let theirs = super::desk::uploading(&desk.api, &stranger, "batch_id=name", LINES, lines(4));
    let theirs = crate::support::api::answer(theirs).await;
    assert_eq!(figures(&theirs.body["data"]), [4, 4, 0, 0], "{theirs:?}");
    assert_eq!(figures(&desk.batch("name").await), [3, 3, 0, 0]);
    assert_eq!(desk.queued("marketing").await, 7);
    desk.end().await;
}

/// Rows of a batch whose server is killed on the way are all sent, and sent once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_a_batch_whose_server_is_killed_are_all_sent_and_sent_once() {
    const ROWS: usize = 60_000;
    let _alone = heavy().await;
    let mut desk = Desk::new("api-killed").await;
    let mut content = lines(ROWS / 2);
    // Bad rows and repeated recipients on the way must not shift anything.
    content.push_str("{\"to\":\"x\",\"body\":\"y\"}\n");
    content.push_str(&lines(10));
    content.push_str(&lines(ROWS)[lines(ROWS / 2).len()..]);
    let mut random = fastrand::Rng::new();
    let fifth = ROWS as u64 / 5;
    let kills = [0, 1, 2, 3].map(|times| times * fifth + random.u64(500..3_000));
    println!("figure: batch_killed at_rows={kills:?}");
    let parameters = "batch_id=killed&priority=high";
    for row in kills {
        let upload = tokio::spawn(desk.uploading(parameters, LINES, content.clone()).send());
        desk.await_row("killed", row).await;
        desk.kill_and_start().await;
        drop(upload.await.unwrap());
        // The bad row is behind the first half, and kept with the mark that is behind it.
        let kept = desk.rejections("killed", 100).await.len();
        assert_eq!(
            kept,
            usize::from(desk.complete_to("killed").await > ROWS as u64 / 2)
        );
        if row < kills[3] {
            // Instead of waiting for the end of its lease.
            let ended = "UPDATE batches SET lease_until = now()";
            desk.database.execute(ended).await;
        }
    }
    // The lease of a server that died ends soon.
    let mut answer = desk.upload(parameters, LINES, content.clone()).await;
    assert_eq!(reason(&answer), "in_progress", "{answer:?}");
    eventually("it is taken again", Duration::from_secs(60), async || {
        if answer.status == 409 {
            let seconds = answer.header("retry-after").parse().unwrap();
            assert!((1..=11).contains(&seconds), "{answer:?}");
            sleep(Duration::from_secs(seconds)).await;
            answer = desk.upload(parameters, LINES, content.clone()).await;
        }
        answer.status == 202
    })
    .await;
    let rows = ROWS as u64;
    assert_eq!(figures(&answer.body["data"]), [rows + 11, rows, 10, 1]);
    assert_eq!(
        figures(&desk.batch("killed").await),
        [rows + 11, rows, 10, 1]
    );
    assert_eq!(
        desk.rejections("killed", 100).await,
        [(rows / 2 + 1, "to".to_owned())]
    );
    let messages = desk.queued("transactional").await;
    let sent = send_all(&desk, messages, ROWS).await;
    println!(
        "figure: batch_killed rows={ROWS} kills={} queued_twice={} sent={sent}",
        kills.len(),
        messages - ROWS
    );
    assert!(
        messages - ROWS <= kills.len() * WINDOW,
        "{messages} messages"
    );
    desk.end().await;
}

/// Lets a worker send what is queued; gives how many were sent, each once.
async fn send_all(desk: &Desk, messages: usize, jobs: usize) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("accepted.jsonl");
    let config = desk
        .config
        .clone()
        .set("LANES__BUDGET_PER_SECOND", 1_000_000)
        .set(
            "CARRIERS__DEFAULT__SANDBOX_RECORD_FILE",
            record.to_str().unwrap(),
        );
    let worker = Worker::start(&config).await;
    let accepted = || std::fs::read_to_string(&record).map_or(0, |text| text.lines().count());
    eventually("all is sent", LIMIT, async || {
        let delivered = worker.count("lanekeeper_deliveries_total", &[]).await;
        delivered >= messages as u64 && accepted() >= jobs
    })
    .await;
    worker.stop().await;
    let record = std::fs::read_to_string(&record).unwrap();
    let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].to_string();
    let mut ids: Vec<String> = record.lines().map(id).collect();
    let sent = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((sent, ids.len()), (jobs, jobs));
    sent
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_uploads_at_one_time_one_is_at_work() {
    let desk = Desk::new("api-two").await;
    let rows = lines(20_000);
    let first = tokio::spawn(desk.uploading("batch_id=two", LINES, rows.clone()).send());
    desk.await_row("two", 500).await;
    assert_eq!(desk.batch("two").await["status"], "queueing");
    let second = desk.upload("batch_id=two", LINES, rows.clone()).await;
    assert_eq!(
        (second.status.as_u16(), reason(&second)),
        (409, "in_progress"),
        "{second:?}"
    );
    assert!(second.header("retry-after").parse::<u64>().unwrap() >= 1);
    assert_eq!(first.await.unwrap().unwrap().status(), 202);
    assert_eq!(desk.queued("marketing").await, 20_000);
    let names: Vec<_> = (0..4)
        .map(|_| desk.upload("batch_id=race", CSV, "to,body\n+447700900123,x\n"))
        .collect();
    for answer in futures_util::future::join_all(names).await {
        assert!(
            [202, 409, 429].contains(&answer.status.as_u16()),
            "{answer:?}"
        );
    }
    assert_eq!(desk.queued("marketing").await, 20_001);
    desk.end().await;
}

/// Cut off while it comes in: nothing was queued. Cut off while it is queued: it goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_goes_away_leaves_nothing_half_done() {
    let desk = Desk::new("api-cut").await;
    let rows = lines(20_000);
    let mut stream = TcpStream::connect(&desk.api.address).await.unwrap();
    let head = head(&desk, "cut", rows.len());
    let half = &rows.as_bytes()[..rows.len() / 2];
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(half).await.unwrap();
    drop(stream);
    let whole = desk.uploading("batch_id=cut", LINES, rows.clone());
    let sent = tokio::spawn(whole.send());
    desk.await_row("cut", 500).await;
    sent.abort();
    desk.await_row("cut", 20_000).await;
    eventually("it is queued", LIMIT, async || {
        desk.batch("cut").await["status"] == "queued"
    })
    .await;
    let again = desk.upload("batch_id=cut", LINES, rows).await;
    assert_eq!(again.body["data"]["already_queued"], 20_000, "{again:?}");
    assert_eq!(desk.queued("marketing").await, 20_000);
    desk.end().await;
}

/// A body that ends before its length says so is refused as a whole, also where its last row looks
/// whole.
#[tokio::test]
async fn what_is_shorter_than_it_says_is_refused_as_a_whole() {
    let desk = Desk::new("api-short").await;
    let rows = lines(10);
    let mut stream = TcpStream::connect(&desk.api.address).await.unwrap();
    let head = head(&desk, "short", rows.len() + 1);
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(rows.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = Vec::new();
    // hyper may close without a word: the client has gone.
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer);
    assert!(!answer.contains("202 Accepted"), "{answer}");
    assert_eq!(desk.queued("marketing").await, 0);
    assert_eq!(desk.complete_to("short").await, 0);
    desk.end().await;
}

fn head(desk: &Desk, batch: &str, length: usize) -> String {
    format!(
        "POST /api/v1/batches?channel=sms&batch_id={batch} HTTP/1.1\r\nHost: x\r\n\
         X-API-Key: {}\r\nContent-Type: {LINES}\r\nContent-Length: {length}\r\n\r\n",
        desk.key
    )
}

/// A server that is told to stop says how far it has come, and another goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_says_how_far_it_has_come() {
    let mut desk = Desk::new("api-stop").await;
    let rows = lines(40_000);
    let upload = tokio::spawn(crate::support::api::answer(desk.uploading(
        "batch_id=stop",
        LINES,
        rows.clone(),
    )));
    desk.await_row("stop", 1_000).await;
    desk.api.process.sigterm();
    let stopped = upload.await.unwrap();
    assert_eq!(
        (stopped.status.as_u16(), stopped.code()),
        (503, "SERVICE_UNAVAILABLE"),
        "{stopped:?}"
    );
    let row = stopped.body["error"]["details"]["complete_to_row"]
        .as_u64()
        .unwrap();
    assert_eq!(row, desk.complete_to("stop").await);
    assert!(stopped.header("retry-after").parse::<u64>().unwrap() >= 1);
    // What was on its way was brought to its end: nothing is there twice later.
    assert_eq!(desk.queued("marketing").await as u64, row);
    let config = WorkerConfig::clone(&desk.config);
    desk.api = crate::support::api::ApiServer::start(&config).await;
    assert_eq!(desk.batch("stop").await["status"], "stopped");
    let again = desk.upload("batch_id=stop", LINES, rows).await;
    assert_eq!(again.body["data"]["already_queued"], row, "{again:?}");
    assert_eq!(desk.queued("marketing").await, 40_000);
    desk.end().await;
}
