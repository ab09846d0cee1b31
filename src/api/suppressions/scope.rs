//! Recipients and what their opt-outs concern, as clients write them.

use crate::api::app::App;
use crate::api::error::{ApiError, ApiResult, Code};
use crate::api::texts::channel_names;
use crate::domain::{RecipientError, Scope, typed_recipient_key};

/// What an opt-out concerns.
#[derive(Debug, utoipa::ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(dead_code, reason = "it describes")]
pub enum ScopeName {
    All,
    Sms,
    Whatsapp,
    Email,
    Rcs,
    Viber,
    Messenger,
    Line,
    Telegram,
    Push,
    Voice,
}

/// The scope of that name, where one is given.
pub(super) fn scope_of(name: Option<&str>) -> ApiResult<Option<Scope>> {
    let read = |name| {
        Scope::parse(name).ok_or_else(|| {
            let expected = format!("expected all, or one of {}", channel_names());
            ApiError::validation("channel", None, expected)
        })
    };
    name.map(read).transpose()
}

/// A recipient in the form in which jobs are compared, and the scope of its opt-out: the one that is
/// given, else what suits the recipient.
pub(super) fn recipient_of(
    app: &App,
    field: &str,
    text: &str,
    scope: Option<Scope>,
) -> ApiResult<(String, Scope)> {
    let scope = scope.unwrap_or_else(|| Scope::suggested_for(text));
    match typed_recipient_key(scope, text, app.default_region) {
        Ok(key) => Ok((key, scope)),
        Err(error) => Err(unusable(field, error)),
    }
}

/// What was given is not told back: it may be a person's.
fn unusable(field: &str, error: RecipientError) -> ApiError {
    let expected = error.to_string();
    match error {
        RecipientError::Phone(_) => {
            ApiError::new(Code::InvalidPhoneNumber, format!("{field}: {expected}"))
                .detail("field", field)
                .detail("value", serde_json::Value::Null)
                .detail("expected", expected)
        }
        _ => ApiError::validation(field, None, expected),
    }
}
