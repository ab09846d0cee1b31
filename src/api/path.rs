//! Parameters of the path.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;

use super::error::{ApiError, ApiResult};

/// The parameters of the path, percent-decoded.
#[derive(Debug)]
pub struct PathParams(RawPathParams);

impl<S: Send + Sync> FromRequestParts<S> for PathParams {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> ApiResult<Self> {
        let params = RawPathParams::from_request_parts(parts, state).await;
        let not_text = |_| ApiError::validation("path", None, "expected percent-encoded UTF-8");
        params.map(Self).map_err(not_text)
    }
}

impl PathParams {
    /// A parameter that the route has.
    ///
    /// # Errors
    /// When the route has none of that name.
    pub fn get(&self, name: &str) -> ApiResult<String> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        let missing = || ApiError::validation(name, None, "expected a value");
        found.map(|(_, value)| value.to_owned()).ok_or_else(missing)
    }
}
