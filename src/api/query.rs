//! Parameters of the query string and of the path.

use axum::extract::{FromRequestParts, RawPathParams};
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

/// Parameters of the path.
#[derive(Debug)]
pub struct PathParameters(RawPathParams);

impl PathParameters {
    /// One of them, percent-decoded.
    ///
    /// # Errors
    /// When it is not there.
    pub fn get(&self, name: &str) -> ApiResult<String> {
        path_parameter(&self.0, name)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PathParameters {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> ApiResult<Self> {
        let found = RawPathParams::from_request_parts(parts, state).await;
        let wrong = |_| ApiError::validation("path", None, "expected UTF-8, percent-encoded");
        found.map(Self).map_err(wrong)
    }
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
