//! Who asks, and what they may.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::time::Instant;

use super::app::App;
use super::error::{ApiError, ApiResult, Code};
use crate::accounts::keys::{KeyGrant, KeyScope};

/// The header of the key.
pub static API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Paths that ask for a key. What else there is shows no account's data.
const GUARDED: &str = "/api/";

/// Whoever has made a request, by the key that came with it.
#[derive(Debug, Clone)]
pub struct Caller(KeyGrant);

impl Caller {
    /// What the key grants.
    #[must_use]
    pub const fn grant(&self) -> &KeyGrant {
        &self.0
    }

    /// Whether the key is still valid, for what takes longer than a moment.
    ///
    /// # Errors
    /// [`Code::InvalidApiKey`], when it was revoked meanwhile.
    pub fn still_valid(&self, app: &App) -> ApiResult<()> {
        let ring = app.keys.ring();
        if ring.is_none_or(|ring| ring.is_valid(self.0.key)) {
            return Ok(());
        }
        Err(unauthorised())
    }

    /// Whether the key allows this.
    ///
    /// # Errors
    /// [`Code::Forbidden`], when it does not.
    pub fn may(&self, scope: KeyScope) -> ApiResult<()> {
        if self.0.scopes.allow(scope) {
            return Ok(());
        }
        let message = format!("this needs a key with the scope `{}`", scope.as_str());
        Err(ApiError::new(Code::Forbidden, message).detail("scope", scope.as_str()))
    }
}

/// Dereferences to the grant: `caller.account`, `caller.origin`, `caller.key`.
impl std::ops::Deref for Caller {
    type Target = KeyGrant;

    fn deref(&self) -> &KeyGrant {
        &self.0
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> ApiResult<Self> {
        let caller = parts.extensions.get::<Self>().cloned();
        caller.ok_or_else(unauthorised)
    }
}

pub(super) fn unauthorised() -> ApiError {
    let message = "X-API-Key: expected a key: one that `lanekeeper key create` has shown, or with \
        `lanekeeper dev` the one that it prints";
    ApiError::new(Code::InvalidApiKey, message)
}

/// Lets in only who has a key, before anything of the body is read.
pub(super) async fn authenticate(
    State(app): State<Arc<App>>,
    mut request: Request,
    next: Next,
) -> Response {
    if is_guarded(request.uri()) {
        match caller_of(&app, request.headers()) {
            Ok(caller) => {
                request.extensions_mut().insert(caller);
            }
            Err(error) => return error.into_response(),
        }
    }
    next.run(request).await
}

fn is_guarded(uri: &Uri) -> bool {
    uri.path().starts_with(GUARDED)
}

/// Why a key was refused is told to operators only: whoever tries keys learns nothing.
fn caller_of(app: &App, headers: &HeaderMap) -> ApiResult<Caller> {
    let Some(ring) = app.keys.ring() else {
        let why = "the API keys have not been read from the database yet: try again";
        return Err(ApiError::unavailable(why));
    };
    let mut presented = headers.get_all(&API_KEY).iter();
    let (Some(key), None) = (presented.next(), presented.next()) else {
        return Err(unauthorised());
    };
    let grant = ring.check(key.as_bytes()).map_err(|error| {
        tracing::debug!(reason = error.as_str(), "a request was refused: {error}");
        unauthorised()
    })?;
    let passed = app.limits.pass(grant.key, Instant::now());
    passed.map_err(|limit| {
        let message =
            format!("this key may make {limit} requests per second; try again in a second");
        ApiError::new(Code::RateLimitExceeded, message)
            .retry_after(1)
            .detail("limit", limit)
            .detail("window", "1s")
            .detail("limit_type", "requests")
    })?;
    Ok(Caller(grant.clone()))
}
