//! What became of a batch's messages.

use std::time::Duration;

use serde_json::{Value, json};

use super::desk::{ACCOUNT, CSV, Desk, LINES, figures};
use super::rows::{lines, recipient};
use crate::support::api::{ApiServer, DEV_KEY, answer};
use crate::support::eventually;
use crate::support::records::Records;
use crate::support::stub::{Reply, Stub};
use crate::support::worker::Worker;

const SOON: Duration = Duration::from_secs(60);

async fn await_status(desk: &Desk, id: &str, status: &str) -> Value {
    let what = format!("{id} is {status}");
    eventually(&what, SOON, async || {
        desk.batch(id).await["status"] == status
    })
    .await;
    desk.batch(id).await
}

/// Someone who has opted out keeps nobody else from getting the message, and the same gate says the
/// same to a single message.
#[tokio::test]
async fn one_who_has_opted_out_is_left_out_and_the_others_are_sent() {
    let desk = Desk::new("api-opted").await;
    let records = Records::of(desk.database.pool());
    let opted_out = recipient(40);
    records
        .commit(&format!("INSERT INTO suppressions (account_id, recipient, scope) VALUES ('{ACCOUNT}', '{opted_out}', 'all')"))
        .await;
    let stub = Stub::start().await;
    let worker = Worker::start(&desk.config.clone().carrier(&stub.url)).await;
    let answer = desk.upload("batch_id=opted", LINES, lines(100)).await;
    assert_eq!(
        figures(&answer.body["data"]),
        [100, 100, 0, 0],
        "{answer:?}"
    );
    let found = await_status(&desk, "opted", "ended").await;
    let outcomes = &found["outcomes"];
    assert_eq!(outcomes["dispatched"], 99, "{found}");
    assert_eq!(outcomes["refused"], json!({"opted_out": 1}));
    assert_eq!(
        (&outcomes["pending"], &found["incomplete"]),
        (&json!(0), &json!(false))
    );
    assert_eq!(stub.distinct(), 99);
    assert!(
        stub.first("opted-41").is_none(),
        "the row of who has opted out"
    );
    let single = json!({"to": opted_out, "body": "x"});
    let single = desk.api.send(&desk.key, &single).await;
    assert_eq!(
        (single.status.as_u16(), single.code()),
        (403, "RECIPIENT_OPTED_OUT")
    );
    worker.stop().await;
    desk.end().await;
}

/// A carrier that throttles for a while is asked again for every row: none ends as failed for it.
#[tokio::test]
async fn a_carrier_that_throttles_fails_nobody() {
    let desk = Desk::new("api-throttled").await;
    let stub = Stub::start().await;
    let began = std::time::Instant::now();
    stub.set_script(move |_, _| {
        if began.elapsed() < Duration::from_secs(5) {
            Reply::Status(429)
        } else {
            Reply::Accept
        }
    });
    let config = desk
        .config
        .clone()
        .carrier(&stub.url)
        .set("JOBS__MAX_ATTEMPTS", 50);
    let worker = Worker::start(&config).await;
    desk.upload("batch_id=throttled", LINES, lines(60)).await;
    let found = await_status(&desk, "throttled", "ended").await;
    assert_eq!(found["outcomes"]["dispatched"], 60, "{found}");
    assert_eq!(found["outcomes"]["failed"], json!({}));
    worker.stop().await;
    desk.end().await;
}

#[tokio::test]
async fn what_waits_and_what_is_cancelled_is_told_by_its_reason() {
    let desk = Desk::new("api-waits").await;
    let records = Records::of(desk.database.pool());
    records.hold(ACCOUNT, "campaign", "spring", "paused").await;
    let rows = format!(
        "to,body,campaign_id,not_before,expires_at\n{},a,,,\n{},b,spring,,\n{},c,,2099-01-01T00:00:00Z,\n{},d,,,2001-01-01T00:00:00Z\n",
        recipient(1),
        recipient(2),
        recipient(3),
        recipient(4),
    );
    desk.upload("batch_id=waits", CSV, rows).await;
    let found = desk.batch("waits").await;
    assert_eq!(
        (&found["status"], &found["outcomes"]["pending"]),
        (&json!("queued"), &json!(4))
    );
    let worker = Worker::start(&desk.config).await;
    let settled = async || desk.batch("waits").await["outcomes"]["pending"] == 0;
    eventually("nothing is pending", SOON, settled).await;
    let outcomes = &desk.batch("waits").await["outcomes"];
    assert_eq!(outcomes["dispatched"], 1, "{outcomes}");
    assert_eq!(outcomes["expired"], 1);
    assert_eq!(outcomes["waiting"], 2);
    assert_eq!(
        outcomes["waiting_for"],
        json!({"paused": 1, "not_before": 1})
    );
    records.hold(ACCOUNT, "batch", "waits", "cancelled").await;
    let found = await_status(&desk, "waits", "ended").await;
    assert_eq!(found["outcomes"]["cancelled"], 2, "{found}");
    worker.stop().await;
    desk.end().await;
}

/// What is older than the ledger keeps may be known in part only.
#[tokio::test]
async fn a_batch_older_than_the_ledger_s_memory_is_incomplete() {
    let desk = Desk::new("api-faded").await;
    desk.upload("batch_id=faded", LINES, lines(3)).await;
    assert_eq!(desk.batch("faded").await["incomplete"], false);
    // What workers could not write down may be some of the rows that seem to be on their way.
    let gap = async |account: &str| {
        let insert = "INSERT INTO ledger_gaps VALUES ($1, now() - interval '1 hour', now(), 2)";
        let insert = sqlx::query(insert).bind(account.to_owned());
        insert.execute(desk.database.pool()).await.unwrap();
        // A count holds for half a second at least.
        let started = tokio::time::Instant::now();
        let counted = async || started.elapsed() > Duration::from_secs(1);
        eventually("it is counted anew", SOON, counted).await;
        desk.batch("faded").await["incomplete"].clone()
    };
    assert_eq!(gap("other").await, false);
    assert_eq!(gap(ACCOUNT).await, true);
    desk.database.execute("DELETE FROM ledger_gaps").await;
    desk.database
        .execute("UPDATE batches SET created_at = now() - interval '30 days'")
        .await;
    assert_eq!(desk.batch("faded").await["incomplete"], true);
    desk.end().await;
}

/// A server that starts forgets what nobody has touched for as long as the ledger remembers.
#[tokio::test]
async fn old_batches_are_forgotten() {
    let mut desk = Desk::new("api-old").await;
    let rows = "to,body\nnobody,x\n+447700900123,x\n";
    desk.upload("batch_id=old", CSV, rows).await;
    desk.database
        .execute("UPDATE batches SET updated_at = now() - interval '31 days'")
        .await;
    desk.upload("batch_id=new", CSV, rows).await;
    desk.kill_and_start().await;
    let gone = async || {
        let old = desk.api.get("/api/v1/batches/old", &desk.key).await;
        old.status == 404
    };
    eventually("the old one is forgotten", SOON, gone).await;
    assert_eq!(desk.batch("new").await["rejected"], 1);
    desk.end().await;
}

#[tokio::test]
async fn without_any_service_a_batch_is_sent_and_counted() {
    let dev = ApiServer::dev().await;
    let upload = super::desk::uploading(&dev, DEV_KEY, "batch_id=dev", LINES, lines(50));
    let uploaded = answer(upload).await;
    assert_eq!(
        figures(&uploaded.body["data"]),
        [50, 50, 0, 0],
        "{uploaded:?}"
    );
    let ended = async || {
        let found = dev.get("/api/v1/batches/dev", DEV_KEY).await;
        found.body["data"]["status"] == "ended"
    };
    eventually("all are sent", SOON, ended).await;
    let found = dev.get("/api/v1/batches/dev", DEV_KEY).await;
    assert_eq!(
        found.body["data"]["outcomes"]["dispatched"], 50,
        "{found:?}"
    );
    let other = dev.get("/api/v1/batches/other", DEV_KEY).await;
    assert_eq!(other.status, 404);
}
