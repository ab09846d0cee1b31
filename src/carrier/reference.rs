//! The carrier's own name for a message that it has accepted.
//!
//! It is the text or number `id`, `message_id` or `ref`, the first of them that is there, at the top
//! of a JSON answer of at most 8 KiB; or else the header `x-message-id`; or else there is none. A
//! reference is 1 to 128 printable ASCII characters.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Response;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::timeout;

/// How long the rest of an answer may take, once its status is there.
const READ_WITHIN: Duration = Duration::from_secs(1);

/// The most that is read of an answer, in bytes.
const MAX_ANSWER: usize = 8 * 1024;

const HEADER: &str = "x-message-id";

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    id: Value,
    #[serde(default)]
    message_id: Value,
    #[serde(default, rename = "ref")]
    reference: Value,
}

/// The reference in an answer. An answer that breaks off has none: the status said all.
pub(super) async fn of(response: Response) -> Option<Arc<str>> {
    let header = response.headers().get(HEADER);
    let header = header
        .and_then(|value| value.to_str().ok())
        .and_then(usable);
    let body = read_bounded(response).await;
    body.as_deref().and_then(in_json).or(header)
}

/// The answer's body, if it comes to its end within the bounds. The status has said what matters:
/// a carrier that stalls after it must not hold a slot for long.
pub(super) async fn read_bounded(response: Response) -> Option<Vec<u8>> {
    timeout(READ_WITHIN, read(response)).await.ok().flatten()
}

async fn read(mut response: Response) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.ok()? {
        if body.len() + chunk.len() > MAX_ANSWER {
            return None;
        }
        body.extend_from_slice(&chunk);
    }
    Some(body)
}

fn in_json(body: &[u8]) -> Option<Arc<str>> {
    let answer: Answer = serde_json::from_slice(body).ok()?;
    [answer.id, answer.message_id, answer.reference]
        .into_iter()
        .find_map(|value| match value {
            Value::String(text) => usable(&text),
            Value::Number(number) => usable(&number.to_string()),
            _ => None,
        })
}

fn usable(text: &str) -> Option<Arc<str>> {
    let printable = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    ((1..=128).contains(&text.len()) && printable).then(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_usable_name_counts() {
        let read = |body: &str| in_json(body.as_bytes());
        assert_eq!(read(r#"{"id":"a","message_id":"b"}"#).as_deref(), Some("a"));
        assert_eq!(
            read(r#"{"id":null,"message_id":"b"}"#).as_deref(),
            Some("b")
        );
        assert_eq!(read(r#"{"ref":17,"other":{}}"#).as_deref(), Some("17"));
        let long = format!(r#"{{"id":"{}","ref":"r"}}"#, "x".repeat(129));
        assert_eq!(read(&long).as_deref(), Some("r"));
    }

    #[test]
    fn anything_else_has_none() {
        for body in [
            "",
            "ok",
            "[]",
            "null",
            r#"{"id":{}}"#,
            r#"{"id":""}"#,
            r#"{"id":"a\u0000"}"#,
        ] {
            assert_eq!(in_json(body.as_bytes()), None, "{body}");
        }
    }
}
