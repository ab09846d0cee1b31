//! What is not taken: keys, kinds, sizes, too many at one time.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::desk::{CSV, Desk, JSON, LINES};
use super::rows::lines;
use crate::support::api::{Answer, answer};
use crate::support::{amqp_url, eventually};

const SOON: Duration = Duration::from_secs(20);

fn brief(answer: &Answer) -> (u16, &str) {
    (answer.status.as_u16(), answer.code())
}

#[tokio::test]
async fn keys_kinds_and_parameters_are_checked_before_anything_else() {
    let desk = Desk::new("api-guards").await;
    let reader = desk.key_of("acme", &["read"], "api").await;
    let sender = desk.key_of("acme", &["send"], "api").await;
    let upload = |key: &str, parameters: &str, kind: &str| {
        answer(super::desk::uploading(
            &desk.api,
            key,
            parameters,
            kind,
            lines(3),
        ))
    };
    for key in ["", "nonsense"] {
        assert_eq!(
            brief(&upload(key, "", LINES).await),
            (401, "INVALID_API_KEY")
        );
    }
    assert_eq!(brief(&upload(&reader, "", LINES).await), (403, "FORBIDDEN"));
    for kind in [
        "text/plain",
        "application/octet-stream",
        "text/csv; charset=utf-16",
        "multipart/form-data",
    ] {
        assert_eq!(
            brief(&upload(&sender, "", kind).await),
            (415, "UNSUPPORTED_MEDIA_TYPE"),
            "{kind}"
        );
    }
    for (parameters, field) in [
        ("batch_id=a%20b", "batch_id"),
        ("batch_id=", "batch_id"),
        ("channel=SMS", "channel"),
        ("priority=urgent", "priority"),
        ("campaign_id=", "campaign_id"),
        ("region=gb", "region"),
        ("allow_duplicates=maybe", "allow_duplicates"),
        ("batchid=x", "batchid"),
    ] {
        let refused = upload(&sender, parameters, LINES).await;
        assert_eq!(
            brief(&refused),
            (422, "VALIDATION_ERROR"),
            "{parameters}: {refused:?}"
        );
        let details = &refused.body["error"]["details"];
        assert_eq!(details["field"], field, "{details}");
    }
    let compressed = super::desk::uploading(&desk.api, &sender, "", CSV, lines(3));
    let compressed = answer(compressed.header("Content-Encoding", "gzip")).await;
    assert_eq!(compressed.status, 415);
    for path in ["x", "x/rejections", "%ff", "x%00", "a%20b/rejections"] {
        let path = format!("/api/v1/batches/{path}");
        assert!([403, 404, 422].contains(&desk.api.get(&path, &sender).await.status.as_u16()));
        let found = desk.api.get(&path, &reader).await;
        assert!(
            [404, 422].contains(&found.status.as_u16()),
            "{path}: {found:?}"
        );
    }
    for page in [
        "limit=0",
        "limit=1001",
        "limit=x",
        "cursor=x",
        "cursor=-1",
        "more=1",
    ] {
        let path = format!("/api/v1/batches/x/rejections?{page}");
        assert_eq!(
            brief(&desk.api.get(&path, &reader).await),
            (422, "VALIDATION_ERROR"),
            "{page}"
        );
    }
    assert_eq!(desk.api.get("/api/v1/batches", &reader).await.status, 405);
    assert_eq!(desk.queued("marketing").await, 0);
    desk.end().await;
}

/// The answer reaches clients that still send.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_too_large_is_told_so_and_nothing_is_kept() {
    let desk = Desk::with("api-large", amqp_url(), |config| {
        config.set("API__BATCH_MAX_MIB", 1)
    })
    .await;
    let rows = lines(60_000);
    assert!(rows.len() > 2 << 20);
    let declared = desk.upload("batch_id=large", LINES, rows.clone()).await;
    assert_eq!(brief(&declared), (413, "PAYLOAD_TOO_LARGE"));
    let undeclared = chunked(&desk, rows.as_bytes()).await;
    assert!(undeclared.starts_with("HTTP/1.1 413"), "{undeclared}");
    assert!(undeclared.contains("PAYLOAD_TOO_LARGE") && undeclared.contains("1048576"));
    let fits = desk.upload("batch_id=large", LINES, lines(1_000)).await;
    assert_eq!(fits.status, 202, "{fits:?}");
    assert_eq!(desk.queued("marketing").await, 1_000);
    desk.end().await;
}

/// Uploads without saying how much it will be, and reads the answer.
async fn chunked(desk: &Desk, rows: &[u8]) -> String {
    let mut stream = TcpStream::connect(&desk.api.address).await.unwrap();
    let head = format!(
        "POST /api/v1/batches?channel=sms HTTP/1.1\r\nHost: x\r\nX-API-Key: {}\r\n\
         Content-Type: {LINES}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
        desk.key
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    for piece in rows.chunks(50_000) {
        let head = format!("{:x}\r\n", piece.len());
        let chunk = [head.as_bytes(), piece, b"\r\n"].concat();
        stream.write_all(&chunk).await.unwrap();
    }
    stream.write_all(b"0\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// A connection with an upload that is under way and goes on no further.
async fn begin(desk: &Desk, batch: &str) -> TcpStream {
    let mut stream = TcpStream::connect(&desk.api.address).await.unwrap();
    let head = format!(
        "POST /api/v1/batches?channel=sms&batch_id={batch} HTTP/1.1\r\nHost: x\r\nX-API-Key: {}\r\n\
         Content-Type: {LINES}\r\nContent-Length: 1000\r\n\r\n{{\"to\":",
        desk.key
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn an_account_has_few_uploads_at_one_time_and_leaves_room_for_others() {
    let desk = Desk::with("api-slots", amqp_url(), |config| {
        config
            .set("API__BATCH_UPLOADS", 3)
            .set("API__BATCH_UPLOADS_PER_ACCOUNT", 2)
    })
    .await;
    let own = async || desk.upload("batch_id=c", LINES, lines(1)).await;
    // On a busy machine the database may be too slow for one of them, which then holds no place.
    let mut held = Vec::new();
    eventually("as many as may are under way", SOON, async || {
        held.push(begin(&desk, &format!("held-{}", held.len())).await);
        let answer = own().await;
        answer.status == 429
            && answer.header("retry-after").parse::<u64>().is_ok()
            && answer.code() == "RATE_LIMIT_EXCEEDED"
            && answer.body["error"]["details"]["limit_type"] == "uploads"
    })
    .await;
    let other = desk.key_of("other", &["send"], "api").await;
    let theirs = super::desk::uploading(&desk.api, &other, "batch_id=c", LINES, lines(1));
    assert_eq!(answer(theirs).await.status, 202);
    drop(held);
    eventually("there is room again", SOON, async || {
        own().await.status == 202
    })
    .await;
    desk.end().await;
}

/// A key that is revoked ends an upload that comes in, and one that is being queued.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_key_ends_what_came_with_it() {
    let desk = Desk::new("api-revoked").await;
    let revoke = "UPDATE api_keys SET revoked_at = now() WHERE revoked_at IS NULL";
    let mut incoming = begin(&desk, "incoming").await;
    let queueing = tokio::spawn(answer(desk.uploading(
        "batch_id=queueing",
        LINES,
        lines(200_000),
    )));
    desk.await_row("queueing", 500).await;
    desk.database.execute(revoke).await;
    let stopped = queueing.await.unwrap();
    assert_eq!(brief(&stopped), (401, "INVALID_API_KEY"), "{stopped:?}");
    let row = stopped.body["error"]["details"]["complete_to_row"]
        .as_u64()
        .unwrap();
    assert!((500..200_000).contains(&row), "{row}");
    assert_eq!(row, desk.complete_to("queueing").await);
    let mut text = String::new();
    while !text.contains("\r\n") {
        incoming.write_all(b" ").await.unwrap();
        let mut piece = [0; 1024];
        let read =
            tokio::time::timeout(Duration::from_millis(100), incoming.read(&mut piece)).await;
        if let Ok(read) = read {
            text.push_str(std::str::from_utf8(&piece[..read.unwrap()]).unwrap());
        }
    }
    assert!(text.starts_with("HTTP/1.1 401"), "{text}");
    let key = desk.key_of("acme", &["send", "read"], "api").await;
    let found = desk.api.get("/api/v1/batches/queueing", &key).await;
    assert_eq!(found.body["data"]["status"], "stopped");
    desk.end().await;
}

/// Whatever comes: an answer that is one of those described, and no panic.
#[tokio::test]
async fn nonsense_gets_an_answer() {
    let desk = Desk::new("api-nonsense").await;
    let mut random = fastrand::Rng::with_seed(7);
    let kinds = [CSV, LINES, JSON];
    let words = [
        "to",
        "body",
        ",",
        ";",
        "\t",
        "\n",
        "\r\n",
        "\"",
        "'",
        "{",
        "}",
        "[",
        "]",
        ":",
        "\\u0000",
        "\\ud800",
        "+447700900123",
        "null",
        "sep=;",
        "\u{feff}",
        "é",
        "metadata",
        "1e400",
        " ",
        "\0",
        "not_before",
    ];
    for _ in 0..300 {
        let mut bytes = Vec::new();
        for _ in 0..random.usize(0..40) {
            if random.u8(..) < 8 {
                bytes.push(random.u8(..));
            } else {
                bytes.extend_from_slice(random.choice(words).unwrap().as_bytes());
            }
        }
        let kind = random.choice(kinds).unwrap();
        let answer = desk.upload("", kind, bytes.clone()).await;
        let status = answer.status.as_u16();
        let shown = String::from_utf8_lossy(&bytes);
        assert!(
            [202, 400, 422].contains(&status),
            "{kind} {shown:?}: {answer:?}"
        );
    }
    assert!(!desk.api.process.log().contains("panicked"));
    desk.end().await;
}
