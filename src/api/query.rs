//! Parameters of the query string and of the path.

use axum::extract::{FromRequestParts, RawPathParams, Request};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use serde::de::DeserializeOwned;

use super::error::{ApiError, ApiResult};

/// Parameters of the query string. Unknown ones are refused: a misspelt filter must not show
/// everything.
#[derive(Debug)]
pub struct Query<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> ApiResult<Self> {
        let query = axum::extract::Query::<T>::try_from_uri(&parts.uri);
        match query {
            Ok(query) => Ok(Self(query.0)),
            Err(rejection) => Err(unreadable(&rejection)),
        }
    }
}

/// The rejection's text names parameter and expectation, and may repeat a value: it is told to whoever
/// has sent it, and written down nowhere.
fn unreadable(rejection: &axum::extract::rejection::QueryRejection) -> ApiError {
    let text = rejection.body_text();
    let text = text
        .rsplit_once("query string: ")
        .map_or(&*text, |(_, text)| text);
    let (field, expected) = text.split_once(": ").unwrap_or(("query", text));
    ApiError::validation(field, None, expected)
}

/// Refuses a path that is no text: nothing has such a name.
pub(super) async fn readable(request: Request, next: Next) -> Response {
    let path = percent_encoding::percent_decode_str(request.uri().path());
    if path.decode_utf8().is_ok() {
        return next.run(request).await;
    }
    ApiError::validation("path", None, "expected UTF-8 behind its percent signs").into_response()
}

/// One parameter of the path, percent-decoded.
///
/// # Errors
/// When it is not UTF-8, or not there.
pub(super) fn path_parameter(params: &RawPathParams, name: &str) -> ApiResult<String> {
    let found = params.iter().find(|(known, _)| *known == name);
    let (_, value) = found.ok_or_else(|| ApiError::validation(name, None, "expected a value"))?;
    Ok(value.to_owned())
}
