//! What goes wrong, as a client is told it.

use std::borrow::Cow;

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value};

use super::reply::Sealed;
use crate::dispatch::ports::RecordsError;

/// What went wrong, from a closed list: clients decide by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Code {
    /// The body is not JSON, or not UTF-8.
    MalformedBody,
    /// There is no such key, or it is revoked.
    InvalidApiKey,
    /// The account is paused.
    AccountPaused,
    /// The key does not allow this.
    Forbidden,
    /// The recipient has opted out.
    RecipientOptedOut,
    /// It is outside the recipient's hours.
    QuietHours,
    /// The account, campaign, journey or batch is cancelled.
    SendingCancelled,
    /// Nobody has configured the account.
    UnknownAccount,
    /// There is nothing there.
    NotFound,
    /// The path knows other methods.
    MethodNotAllowed,
    /// The body did not arrive in time.
    RequestTimeout,
    /// The same `Idempotency-Key` came with another body.
    IdempotencyKeyReused,
    /// It contradicts what is there already.
    Conflict,
    /// The body is larger than what is read.
    PayloadTooLarge,
    /// The body is not of a kind that is read here.
    UnsupportedMediaType,
    /// The recipient is no telephone number.
    InvalidPhoneNumber,
    /// A field or parameter cannot be right.
    ValidationError,
    /// A ceiling is reached.
    RateLimitExceeded,
    /// The recipient has had as many messages as a frequency cap allows.
    FrequencyCapExceeded,
    /// Something is wrong in here.
    InternalError,
    /// The broker or the database gives no answer.
    ServiceUnavailable,
}

impl Code {
    /// Its name, in answers and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MalformedBody => "MALFORMED_BODY",
            Self::InvalidApiKey => "INVALID_API_KEY",
            Self::AccountPaused => "ACCOUNT_PAUSED",
            Self::Forbidden => "FORBIDDEN",
            Self::RecipientOptedOut => "RECIPIENT_OPTED_OUT",
            Self::QuietHours => "QUIET_HOURS",
            Self::SendingCancelled => "SENDING_CANCELLED",
            Self::UnknownAccount => "UNKNOWN_ACCOUNT",
            Self::NotFound => "NOT_FOUND",
            Self::MethodNotAllowed => "METHOD_NOT_ALLOWED",
            Self::RequestTimeout => "REQUEST_TIMEOUT",
            Self::IdempotencyKeyReused => "IDEMPOTENCY_KEY_REUSED",
            Self::Conflict => "CONFLICT",
            Self::PayloadTooLarge => "PAYLOAD_TOO_LARGE",
            Self::UnsupportedMediaType => "UNSUPPORTED_MEDIA_TYPE",
            Self::InvalidPhoneNumber => "INVALID_PHONE_NUMBER",
            Self::ValidationError => "VALIDATION_ERROR",
            Self::RateLimitExceeded => "RATE_LIMIT_EXCEEDED",
            Self::FrequencyCapExceeded => "FREQUENCY_CAP_EXCEEDED",
            Self::InternalError => "INTERNAL_ERROR",
            Self::ServiceUnavailable => "SERVICE_UNAVAILABLE",
        }
    }

    /// The status that goes with it.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        match self {
            Self::MalformedBody => StatusCode::BAD_REQUEST,
            Self::InvalidApiKey => StatusCode::UNAUTHORIZED,
            Self::AccountPaused => StatusCode::PAYMENT_REQUIRED,
            Self::Forbidden
            | Self::RecipientOptedOut
            | Self::QuietHours
            | Self::SendingCancelled
            | Self::UnknownAccount => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::IdempotencyKeyReused | Self::Conflict => StatusCode::CONFLICT,
            Self::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::InvalidPhoneNumber | Self::ValidationError => StatusCode::UNPROCESSABLE_ENTITY,
            Self::RateLimitExceeded | Self::FrequencyCapExceeded => StatusCode::TOO_MANY_REQUESTS,
            Self::InternalError => StatusCode::INTERNAL_SERVER_ERROR,
            Self::ServiceUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

/// How soon a client may ask again after [`Code::ServiceUnavailable`], in seconds.
const AGAIN_AFTER: u64 = 1;

/// An error as a client is told it. It never holds a secret, a body or a recipient.
#[derive(Debug, Clone)]
pub struct ApiError {
    code: Code,
    message: Cow<'static, str>,
    details: Map<String, Value>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// Handlers give this back.
pub type ApiResult<T> = Result<T, ApiError>;

impl ApiError {
    /// An error with what a person should read.
    #[must_use]
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            message: message.into(),
            details: Map::new(),
            headers: Vec::new(),
        }
    }

    /// A field or parameter that cannot be right. `value` is what was given, where it may be told
    /// back: never a recipient, a body or a secret.
    #[must_use]
    pub fn validation(field: &str, value: Option<Value>, expected: impl Into<String>) -> Self {
        let expected = expected.into();
        Self::new(Code::ValidationError, format!("{field}: {expected}"))
            .detail("field", field)
            .detail("value", value.unwrap_or(Value::Null))
            .detail("expected", expected)
    }

    /// There is no such thing, or it is another account's.
    #[must_use]
    pub fn not_found(what: &str) -> Self {
        Self::new(Code::NotFound, format!("there is no {what}"))
    }

    /// The broker or the database gives no answer.
    #[must_use]
    pub fn unavailable(why: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::ServiceUnavailable, why).retry_after(AGAIN_AFTER)
    }

    /// Adds to what a program should read.
    #[must_use]
    pub fn detail(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// Says when to ask again, in seconds, as a header and in the details.
    #[must_use]
    pub fn retry_after(self, seconds: u64) -> Self {
        self.header(header::RETRY_AFTER, seconds.into())
            .detail("retry_after", seconds)
    }

    /// Adds a header to the answer.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// What went wrong.
    #[must_use]
    pub const fn code(&self) -> Code {
        self.code
    }

    /// What a program should read.
    #[must_use]
    pub const fn details(&self) -> &Map<String, Value> {
        &self.details
    }

    /// What a person should read.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// The database gave no answer.
impl From<RecordsError> for ApiError {
    fn from(error: RecordsError) -> Self {
        tracing::warn!(%error, "a request could not be answered");
        Self::unavailable(format!("{error}: try again"))
    }
}

/// What stands under `error` in an answer.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct ErrorBody {
    /// What went wrong.
    pub code: Code,
    /// The same for a person.
    #[schema(value_type = String)]
    pub message: Cow<'static, str>,
    /// The HTTP status.
    pub status: u16,
    /// The same for a program; which entries there are depends on the code.
    #[schema(value_type = Object)]
    pub details: Map<String, Value>,
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = self.code.status();
        let body = ErrorBody {
            code: self.code,
            message: self.message,
            status: status.as_u16(),
            details: self.details,
        };
        let mut response = Sealed::error(status, &body);
        for (name, value) in self.headers {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_has_one_name_everywhere() {
        for code in [
            Code::MalformedBody,
            Code::InvalidApiKey,
            Code::IdempotencyKeyReused,
            Code::FrequencyCapExceeded,
        ] {
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
        }
    }
}
