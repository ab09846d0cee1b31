//! A broker or a database that goes away while a batch is being queued.

use std::time::{Duration, Instant};

use super::desk::{Desk, LINES, figures, uploading};
use super::rows::lines;
use crate::support::api::{ApiServer, answer, issue_key_at};
use crate::support::heavy;
use crate::support::postgres::PrivatePostgres;
use crate::support::rabbit::Rabbit;
use crate::support::worker::{WorkerConfig, declare};
use crate::support::{amqp_url, unique_prefix};

const ROWS: usize = 100_000;

/// A broker that is away for some seconds is waited for, and nothing is missing then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_is_away_for_five_seconds_is_waited_for() {
    let rabbit = Rabbit::start().await;
    let _alone = heavy().await;
    let desk = Desk::with("api-away", rabbit.url(), |config| config).await;
    let upload = tokio::spawn(answer(desk.uploading("batch_id=away", LINES, lines(ROWS))));
    desk.await_row("away", 2_000).await;
    rabbit.stop_app().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(desk.batch("away").await["status"], "queueing");
    rabbit.start_app().await;
    let answer = upload.await.unwrap();
    let all = ROWS as u64;
    assert_eq!(
        figures(&answer.body["data"]),
        [all, all, 0, 0],
        "{answer:?}"
    );
    let messages = desk.queued("marketing").await;
    println!(
        "figure: batch_broker_away rows={ROWS} queued_twice={}",
        messages - ROWS
    );
    assert!((ROWS..=ROWS + 2_000).contains(&messages), "{messages}");
}

/// A broker that stays away: the answer and the batch say up to which row all is queued, and the same
/// upload goes on from there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_whose_broker_is_gone_goes_on_when_it_is_back() {
    let mut rabbit = Rabbit::start().await;
    let _alone = heavy().await;
    let desk = Desk::with("api-gone", rabbit.url(), |config| config).await;
    let upload = tokio::spawn(answer(desk.uploading("batch_id=gone", LINES, lines(ROWS))));
    desk.await_row("gone", 5_000).await;
    rabbit.kill();
    let lost = Instant::now();
    let stopped = upload.await.unwrap();
    let waited = lost.elapsed();
    assert_eq!(
        (stopped.status.as_u16(), stopped.code()),
        (503, "SERVICE_UNAVAILABLE"),
        "{stopped:?}"
    );
    assert!(waited > Duration::from_secs(25), "{waited:?}");
    assert!(!stopped.header("retry-after").is_empty());
    let details = &stopped.body["error"]["details"];
    let row = details["complete_to_row"].as_u64().unwrap();
    assert_eq!(
        (row, &details["accepted"]),
        (desk.complete_to("gone").await, &row.into())
    );
    let found = desk.batch("gone").await;
    assert_eq!(
        (&found["status"], &found["complete_to_row"]),
        (&"stopped".into(), &row.into())
    );
    // What begins now is told so at once.
    let asked = Instant::now();
    let early = desk.upload("batch_id=early", LINES, lines(3)).await;
    assert_eq!(
        (early.status.as_u16(), desk.complete_to("early").await),
        (503, 0)
    );
    assert!(
        asked.elapsed() < Duration::from_secs(5),
        "{:?}",
        asked.elapsed()
    );
    rabbit.restart().await;
    // The server notices after a pause that the broker is back.
    let found = async || desk.upload("batch_id=back", LINES, lines(0)).await.status != 503;
    crate::support::eventually("uploads are taken", Duration::from_secs(60), found).await;
    let again = desk.upload("batch_id=gone", LINES, lines(ROWS)).await;
    let data = &again.body["data"];
    let all = ROWS as u64;
    assert_eq!(figures(data), [all, all, 0, 0], "{again:?}");
    assert_eq!(data["already_queued"], row);
    let messages = desk.queued("marketing").await;
    println!(
        "figure: batch_broker_gone rows={ROWS} at_row={row} queued_twice={}",
        messages - ROWS
    );
    assert!((ROWS..=ROWS + 2_000).contains(&messages), "{messages}");
}

/// A database that takes no notes for some seconds holds the batch up, and nothing more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_answers_late_holds_a_batch_up() {
    let mut postgres = PrivatePostgres::start_migrated().await;
    let _alone = heavy().await;
    let prefix = unique_prefix("api-database");
    let config = WorkerConfig::new(&prefix)
        .set("AMQP__URL", &amqp_url())
        .set("DATABASE__URL", &postgres.url());
    declare(&config).await;
    let api = ApiServer::start(&config).await;
    let key = issue_key_at(&postgres.pool(), "acme").await;
    let known = async || api.get("/api/v1/batches/none", &key).await.status == 404;
    crate::support::eventually("the key is known", Duration::from_secs(20), known).await;
    let upload = tokio::spawn(answer(uploading(
        &api,
        &key,
        "batch_id=late",
        LINES,
        lines(ROWS),
    )));
    let select = "SELECT count(*) FROM batches WHERE confirmed_line >= 2000";
    let pool = postgres.pool();
    let begun = async || {
        sqlx::query_scalar::<_, i64>(select)
            .fetch_one(&pool)
            .await
            .unwrap()
            > 0
    };
    crate::support::eventually("it is under way", Duration::from_secs(60), begun).await;
    postgres.freeze();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let asked = Instant::now();
    assert_eq!(api.get("/api/v1/batches/late", &key).await.status, 503);
    let early = uploading(&api, &key, "batch_id=other", LINES, lines(3));
    assert_eq!(answer(early).await.status, 503);
    assert!(
        asked.elapsed() < Duration::from_secs(8),
        "{:?}",
        asked.elapsed()
    );
    postgres.thaw();
    let answer = upload.await.unwrap();
    let all = ROWS as u64;
    assert_eq!(
        figures(&answer.body["data"]),
        [all, all, 0, 0],
        "{answer:?}"
    );
    let queues = crate::support::queues::Queues::connect(&amqp_url(), &prefix).await;
    assert_eq!(queues.ready("marketing").await, ROWS);
    queues.remove().await;
}
