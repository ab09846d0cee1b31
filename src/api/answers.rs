//! The errors that many routes have in common, for the document.

use utoipa::IntoResponses;

use super::reply::ErrorEnvelope;

/// Of routes that only read.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "it describes")]
pub(super) enum ReadErrors {
    /// `MALFORMED_BODY`: there is a body, and it broke off
    #[response(status = 400)]
    Malformed(ErrorEnvelope),
    /// `INVALID_API_KEY`
    #[response(status = 401)]
    Unauthorised(ErrorEnvelope),
    /// `FORBIDDEN`: the key has not the scope
    #[response(status = 403)]
    Forbidden(ErrorEnvelope),
    /// `REQUEST_TIMEOUT`: there is a body, and it did not arrive in time
    #[response(status = 408)]
    Late(ErrorEnvelope),
    /// `PAYLOAD_TOO_LARGE`: there is a body, and it is too large
    #[response(status = 413)]
    Large(ErrorEnvelope),
    /// `VALIDATION_ERROR`: a parameter cannot be right
    #[response(status = 422)]
    Invalid(ErrorEnvelope),
    /// `RATE_LIMIT_EXCEEDED`: too many requests with this key
    #[response(status = 429)]
    TooMany(ErrorEnvelope),
    /// `SERVICE_UNAVAILABLE`: ask again after `Retry-After` seconds
    #[response(status = 503)]
    Unavailable(ErrorEnvelope),
}

/// Of routes that take a body.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "it describes")]
pub(super) enum WriteErrors {
    /// `MALFORMED_BODY`
    #[response(status = 400)]
    Malformed(ErrorEnvelope),
    /// `INVALID_API_KEY`
    #[response(status = 401)]
    Unauthorised(ErrorEnvelope),
    /// `FORBIDDEN`: the key has not the scope `admin`
    #[response(status = 403)]
    Forbidden(ErrorEnvelope),
    /// `REQUEST_TIMEOUT`: the body did not arrive in time
    #[response(status = 408)]
    Late(ErrorEnvelope),
    /// `PAYLOAD_TOO_LARGE`
    #[response(status = 413)]
    Large(ErrorEnvelope),
    /// `UNSUPPORTED_MEDIA_TYPE`
    #[response(status = 415)]
    Unsupported(ErrorEnvelope),
    /// `VALIDATION_ERROR`: a field cannot be right
    #[response(status = 422)]
    Invalid(ErrorEnvelope),
    /// `RATE_LIMIT_EXCEEDED`: too many requests with this key
    #[response(status = 429)]
    TooMany(ErrorEnvelope),
    /// `SERVICE_UNAVAILABLE`: ask again after `Retry-After` seconds
    #[response(status = 503)]
    Unavailable(ErrorEnvelope),
}
