//! Request bodies: read whole, within a time and a size.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;
use serde::de::{DeserializeOwned, IgnoredAny};
use tokio::time::{Instant, timeout_at};

use super::error::{ApiError, ApiResult, Code};
use super::wrong::{Wrong, wrong};

/// The largest body that is read, in bytes: 256 KiB, as for queued jobs. Files of batches have a
/// limit of their own.
pub const MAX_BODY: usize = 256 * 1024;

/// How long a body may take to arrive.
const ARRIVES_WITHIN: Duration = Duration::from_secs(10);

/// Reads the body before anything looks at it, so that the time that a handler may take does not
/// depend on the client's line.
pub(super) async fn collect(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    match read(&parts.headers, body, MAX_BODY).await {
        Ok(bytes) => next.run(Request::from_parts(parts, bytes.into())).await,
        Err(error) => error.into_response(),
    }
}

async fn read(headers: &HeaderMap, body: Body, most: usize) -> ApiResult<Bytes> {
    let mut body = body.into_data_stream();
    if declared_length(headers).is_some_and(|length| length > most as u64) {
        return Err(too_large(most));
    }
    let deadline = Instant::now() + ARRIVES_WITHIN;
    let mut read: Vec<u8> = Vec::new();
    loop {
        let piece = timeout_at(deadline, body.next()).await;
        let piece = piece.map_err(|_| {
            let seconds = ARRIVES_WITHIN.as_secs();
            let message = format!("the body did not arrive within {seconds} seconds");
            ApiError::new(Code::RequestTimeout, message)
        })?;
        let Some(piece) = piece else {
            return Ok(read.into());
        };
        let broken = |_| ApiError::new(Code::MalformedBody, "the body broke off");
        let piece = piece.map_err(broken)?;
        if read.len() + piece.len() > most {
            return Err(too_large(most));
        }
        read.extend_from_slice(&piece);
    }
}

pub(super) fn declared_length(headers: &HeaderMap) -> Option<u64> {
    let length = headers.get(header::CONTENT_LENGTH)?;
    length.to_str().ok()?.parse().ok()
}

/// The body has more than `most` bytes.
pub(super) fn too_large(most: usize) -> ApiError {
    let message = format!("the body has more than {most} bytes");
    ApiError::new(Code::PayloadTooLarge, message).detail("limit", most)
}

/// A JSON body of a kind.
#[derive(Debug)]
pub struct Json<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> ApiResult<Self> {
        let bytes = JsonBytes::from_request(request, state).await?;
        parse(&bytes.0).map(Self)
    }
}

/// A body that says it is JSON, unread.
#[derive(Debug)]
pub struct JsonBytes(pub Bytes);

impl<S: Send + Sync> FromRequest<S> for JsonBytes {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> ApiResult<Self> {
        debug_assert_ne!(request.method(), Method::GET);
        let wrong = if is_coded(request.headers()) {
            Some("expected no header Content-Encoding: send the body as it is")
        } else if is_json(request.headers()) {
            None
        } else {
            Some("expected the header Content-Type: application/json, in UTF-8")
        };
        if let Some(message) = wrong {
            return Err(ApiError::new(Code::UnsupportedMediaType, message));
        }
        let bytes = Bytes::from_request(request, state).await;
        let broken = |_| ApiError::new(Code::MalformedBody, "the body broke off");
        bytes.map(Self).map_err(broken)
    }
}

/// A coding such as gzip is not undone here.
fn is_coded(headers: &HeaderMap) -> bool {
    let coding = headers.get(header::CONTENT_ENCODING);
    coding.is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// JSON is UTF-8.
fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    let Some(kind) = kind.and_then(|kind| kind.to_str().ok()) else {
        return false;
    };
    let mut parts = kind.split(';').map(str::trim);
    let is_json = parts
        .next()
        .is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"));
    let utf8 = |parameter: &str| {
        let lower = parameter.to_ascii_lowercase().replace('"', "");
        lower.is_empty() || !lower.starts_with("charset=") || lower == "charset=utf-8"
    };
    is_json && parts.all(utf8)
}

/// The text of a body.
pub(super) fn text(bytes: &[u8]) -> ApiResult<&str> {
    std::str::from_utf8(bytes).map_err(|error| {
        let place = error.valid_up_to();
        let message = format!("the body is not UTF-8 from byte {place} on");
        ApiError::new(Code::MalformedBody, message)
    })
}

/// Reads JSON. What is wrong is told without what stands there.
pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> ApiResult<T> {
    let text = text(bytes)?;
    // What is read here is an object: a list of its values in order would be taken for one.
    if text.trim_start().starts_with('[') {
        serde_json::from_str::<IgnoredAny>(text).map_err(|error| broken_json(&error, ""))?;
        return Err(ApiError::validation("body", None, "expected an object"));
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    let read = serde_path_to_error::deserialize(&mut reader);
    let read = read.map_err(|error| {
        let path = error.path().to_string();
        broken_json(error.inner(), &path)
    })?;
    reader.end().map_err(|error| broken_json(&error, ""))?;
    Ok(read)
}

/// An error's text may repeat what stands in the body: only errors of our own making are passed on.
pub(super) fn broken_json(error: &serde_json::Error, path: &str) -> ApiError {
    use serde_json::error::Category;
    if error.classify() == Category::Data {
        let text = error.to_string();
        let (text, _) = text.rsplit_once(" at line ").unwrap_or((&text, ""));
        let Wrong { name, expected } = wrong(text);
        let field = match (path, name) {
            ("" | ".", Some(name)) => name,
            ("" | ".", None) => "body".to_owned(),
            // The path ends with the name already, where the reader has come as far.
            (path, Some(name)) if path.rsplit('.').next() != Some(&name) => {
                format!("{path}.{name}")
            }
            (path, _) => path.to_owned(),
        };
        return ApiError::validation(&field, None, expected);
    }
    let (line, column) = (error.line(), error.column());
    let message = format!("the body is not JSON: line {line}, column {column}");
    ApiError::new(Code::MalformedBody, message)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        #[expect(dead_code, reason = "only read")]
        inner: Inner,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        #[expect(dead_code, reason = "only read")]
        count: u32,
    }

    #[test]
    fn the_field_that_is_wrong_is_named_and_nothing_of_it_told() {
        for (body, field) in [
            ("{}", "inner"),
            ("[1]", "body"),
            (
                r#"{"inner":{"count":"S3NTINEL, expected S3NTINEL"}}"#,
                "inner.count",
            ),
            (r#"{"inner":{"count":1.5}}"#, "inner.count"),
            (r#"{"inner":{}}"#, "inner.count"),
            (r#"{"inner":{"count":1,"more":"S3NTINEL"}}"#, "inner.more"),
            (r#"{"inner":{"count":1},"more":"S3NTINEL"}"#, "more"),
            (r#"{"inner":{"count":1,"count":1}}"#, "inner.count"),
            (r#"{"inner":"S3NTINEL"}"#, "inner"),
        ] {
            let error = parse::<Outer>(body.as_bytes()).unwrap_err();
            assert_eq!(error.code(), Code::ValidationError, "{body}");
            assert_eq!(error.details()["field"], field, "{body}");
            assert!(!format!("{error:?}").contains("S3NTINEL"), "{error:?}");
        }
    }

    #[test]
    fn what_is_no_json_is_told_without_it() {
        for body in [
            &b""[..],
            b"{",
            b"S3NTINEL",
            b"\xffS3NTINEL",
            b"{} S3NTINEL",
            b"[[1]",
        ] {
            let error = parse::<serde_json::Value>(body).unwrap_err();
            assert_eq!(error.code(), Code::MalformedBody);
            assert!(!format!("{error:?}").contains("S3NTINEL"), "{error:?}");
        }
        let deep = "[".repeat(100_000);
        let error = parse::<serde_json::Value>(deep.as_bytes()).unwrap_err();
        assert_eq!(error.code(), Code::MalformedBody);
    }
}
