//! Bodies that are too large, and bodies that nobody wants.

use std::time::Duration;

use crate::support::api::{ApiServer, DEV_KEY};
use crate::support::busy;
use crate::support::raw::{Heard, Line};

const MIB: usize = 1024 * 1024;

const LIMIT: Duration = Duration::from_secs(30);

/// How much more memory the server may ever have used, whatever came.
const FLAT: u64 = 24 * MIB as u64;

fn head(path: &str, key: &str, more: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\nContent-Type: application/json\r\n{more}\r\n"
    )
}

/// Like the plainest of clients: says everything, and only then listens.
async fn pour(server: &ApiServer, head: &str, bytes: usize, chunked: bool) -> Heard {
    let mut line = Line::open(&server.address).await;
    line.say(head.as_bytes()).await;
    let piece = vec![b'x'; MIB];
    let mut left = bytes;
    while left > 0 {
        let now = left.min(MIB);
        if chunked {
            line.say(format!("{now:x}\r\n").as_bytes()).await;
        }
        if !line.say(&piece[..now]).await {
            break;
        }
        if chunked {
            line.say(b"\r\n").await;
        }
        left -= now;
    }
    if chunked {
        line.say(b"0\r\n\r\n").await;
    }
    line.hear(LIMIT).await
}

fn assert_too_large(heard: &Heard, what: &str) {
    assert_eq!(heard.statuses(), [413], "{what}: {heard:?}");
    let body = heard.json();
    assert_eq!(body["error"]["code"], "PAYLOAD_TOO_LARGE");
    assert_eq!(body["error"]["details"]["limit"], 256 * 1024);
    assert!(body["meta"]["request_id"].is_string());
}

/// The client reads 413, however much it sends and in whatever way, and the server keeps none of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_over_the_limit_is_told_so_and_not_kept() {
    let _busy = busy().await;
    let server = ApiServer::dev().await;
    let path = "/api/v1/messages/sms";
    let before = server.process.peak_rss_bytes();
    for bytes in [256 * 1024 + 1, 2 * MIB + 1, 10 * MIB, 1024 * MIB] {
        let sized = format!("Content-Length: {bytes}\r\nConnection: close\r\n");
        let heard = pour(&server, &head(path, DEV_KEY, &sized), bytes, false).await;
        assert_too_large(&heard, &format!("{bytes} bytes"));
        let chunked = "Transfer-Encoding: chunked\r\nConnection: close\r\n";
        let heard = pour(&server, &head(path, DEV_KEY, chunked), bytes, true).await;
        assert_too_large(&heard, &format!("{bytes} bytes in chunks"));
    }
    let more = server.process.peak_rss_bytes() - before;
    assert!(more < FLAT, "{more} bytes more");
    server.process.stop().await;
}

/// Whoever asks before sending is told no, and never sends.
#[tokio::test]
async fn who_asks_whether_to_send_too_much_is_told_not_to() {
    let server = ApiServer::dev().await;
    let asks = "Content-Length: 10485760\r\nExpect: 100-continue\r\n";
    let mut line = Line::open(&server.address).await;
    line.say(head("/api/v1/messages/sms", DEV_KEY, asks).as_bytes())
        .await;
    let heard = line.hear(Duration::from_secs(3)).await;
    assert_too_large(&heard, "asked");
    assert!(heard.closed, "what would be read next is not known");
    server.process.stop().await;
}

/// A key that is wrong, and a path that is, are told although the body was never read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_turned_away_at_the_door_reads_why() {
    let _busy = busy().await;
    let server = ApiServer::dev().await;
    let sized = format!("Content-Length: {}\r\nConnection: close\r\n", 64 * MIB);
    for (path, key, status) in [
        ("/api/v1/messages/sms", "lk_nobody", 401),
        ("/api/v1/nothing", "lk_nobody", 401),
        ("/api/v1/nothing", DEV_KEY, 413),
        ("/nothing", DEV_KEY, 413),
    ] {
        let heard = pour(&server, &head(path, key, &sized), 64 * MIB, false).await;
        assert_eq!(heard.statuses(), [status], "{path}: {heard:?}");
        assert_eq!(heard.json()["error"]["status"], status);
    }
    server.process.stop().await;
}

/// The connection of a body that was heard out can be used again.
#[tokio::test]
async fn a_connection_outlives_an_answer_that_came_early() {
    let server = ApiServer::dev().await;
    let mut line = Line::open(&server.address).await;
    let body = "x".repeat(MIB);
    let sized = format!("Content-Length: {}\r\n", body.len());
    let refused = head("/api/v1/messages/sms", "lk_nobody", &sized) + &body;
    let next = "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    line.say((refused + next).as_bytes()).await;
    let heard = line.hear(LIMIT).await;
    assert_eq!(heard.statuses(), [401, 200]);
    server.process.stop().await;
}

/// Nothing is unpacked, so that a bomb is as large as it looks.
#[tokio::test]
async fn a_packed_body_is_not_unpacked() {
    let server = ApiServer::dev().await;
    // The first bytes of a gzip file; the rest does not matter.
    let bomb = "\u{1f}\u{b}\u{8}\0\0\0\0\0\0\u{3}".repeat(1_000);
    for coding in ["gzip", "deflate", "br", "gzip, gzip", "x-gzip"] {
        let more = format!(
            "Content-Length: {}\r\nContent-Encoding: {coding}\r\nConnection: close\r\n",
            bomb.len()
        );
        let request = head("/api/v1/messages/sms", DEV_KEY, &more) + &bomb;
        let mut line = Line::open(&server.address).await;
        line.say(request.as_bytes()).await;
        let heard = line.hear(LIMIT).await;
        assert_eq!(heard.statuses(), [415], "{coding}: {heard:?}");
        assert_eq!(heard.json()["error"]["code"], "UNSUPPORTED_MEDIA_TYPE");
    }
    server.process.stop().await;
}
