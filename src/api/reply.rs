//! Answers, and the envelope around all of them.

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::Serialize;

use super::error::{Code, ErrorBody};

/// What an answer is about, yet without the envelope: the outermost layer puts that around it, so
/// that no answer, whoever makes it, goes out without one.
#[derive(Debug, Clone)]
pub(super) struct Sealed {
    name: &'static str,
    /// Of an error.
    code: Option<Code>,
    json: Bytes,
    next_cursor: Option<Next>,
}

impl Sealed {
    /// An error's answer.
    pub(super) fn error(status: StatusCode, error: &ErrorBody) -> Response {
        Self::response(status, ("error", Some(error.code)), error, None)
    }

    fn response(
        status: StatusCode,
        (name, code): (&'static str, Option<Code>),
        content: &impl Serialize,
        next_cursor: Option<Next>,
    ) -> Response {
        let (status, json) = match serde_json::to_vec(content) {
            Ok(json) => (status, json),
            Err(error) => {
                tracing::error!(%error, "an answer cannot be written as JSON");
                (StatusCode::INTERNAL_SERVER_ERROR, b"null".to_vec())
            }
        };
        let sealed = Self {
            name,
            code,
            json: json.into(),
            next_cursor,
        };
        let mut response = status.into_response();
        response.extensions_mut().insert(sealed);
        response
    }

    /// The code of an error.
    pub(super) const fn code(&self) -> Option<Code> {
        self.code
    }

    /// Puts the envelope around it.
    pub(super) fn open(self, response: &mut Response, request_id: &str, now: Timestamp) {
        let meta = Meta {
            request_id: request_id.to_owned(),
            timestamp: format!("{now:.3}"),
            next_cursor: self.next_cursor,
        };
        let meta = serde_json::to_vec(&meta).unwrap_or_default();
        let parts: [&[u8]; 7] = [
            b"{\"",
            self.name.as_bytes(),
            b"\":",
            &self.json,
            b",\"meta\":",
            &meta,
            b"}",
        ];
        *response.body_mut() = Body::from(parts.concat());
        let headers = response.headers_mut();
        let json = HeaderValue::from_static("application/json");
        headers.insert(header::CONTENT_TYPE, json);
        headers.remove(header::CONTENT_LENGTH);
    }
}

/// Where a list goes on; null at its end.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct Next(Option<String>);

/// What stands under `meta` in every answer.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Meta {
    /// The request's id, also in the header `X-Request-Id`: name it when you ask for help.
    pub request_id: String,
    /// When it was answered.
    #[schema(format = DateTime)]
    pub timestamp: String,
    /// Only of lists: where the next page begins; null on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub next_cursor: Option<Next>,
}

/// An answer as it goes out. Only its description is needed.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Envelope<T> {
    /// What was asked for.
    pub data: T,
    /// About the answer itself.
    pub meta: Meta,
}

/// An error as it goes out. Only its description is needed.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct ErrorEnvelope {
    /// What went wrong.
    pub error: ErrorBody,
    /// About the answer itself.
    pub meta: Meta,
}

/// A handler's answer.
#[derive(Debug)]
pub struct Reply<T> {
    status: StatusCode,
    data: T,
    next_cursor: Option<Next>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl<T: Serialize> Reply<T> {
    /// 200.
    #[must_use]
    pub const fn ok(data: T) -> Self {
        Self::with_status(StatusCode::OK, data)
    }

    /// 201.
    #[must_use]
    pub const fn created(data: T) -> Self {
        Self::with_status(StatusCode::CREATED, data)
    }

    /// 202.
    #[must_use]
    pub const fn accepted(data: T) -> Self {
        Self::with_status(StatusCode::ACCEPTED, data)
    }

    /// With another status.
    #[must_use]
    pub const fn with_status(status: StatusCode, data: T) -> Self {
        Self {
            status,
            data,
            next_cursor: None,
            headers: Vec::new(),
        }
    }

    /// A header.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }
}

impl<T: Serialize> Reply<Vec<T>> {
    /// One page of a list. `next_cursor` is where the next one begins, if there is one.
    #[must_use]
    pub const fn page(items: Vec<T>, next_cursor: Option<String>) -> Self {
        Self {
            status: StatusCode::OK,
            data: items,
            next_cursor: Some(Next(next_cursor)),
            headers: Vec::new(),
        }
    }
}

impl<T: Serialize> IntoResponse for Reply<T> {
    fn into_response(self) -> Response {
        let mut response =
            Sealed::response(self.status, ("data", None), &self.data, self.next_cursor);
        for (name, value) in self.headers {
            response.headers_mut().insert(name, value);
        }
        response
    }
}
