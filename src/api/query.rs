//! Parameters of the query string.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
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
