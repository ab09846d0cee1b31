//! `GET /api/v1/compliance/quiet-hours/preview`.

use std::sync::Arc;

use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::answers::ReadErrors;
use super::app::App;
use super::auth::Caller;
use super::error::{ApiError, ApiResult, Code};
use super::query::Query;
use super::reply::{Envelope, Reply};
use super::send::ChannelName;
use super::texts::channel_of;
use crate::accounts::keys::KeyScope;
use crate::domain::{Channel, Region, normalise_number};
use crate::gates::quiet_hours::{ZoneSource, parse_zone};
use crate::gates::{QuietDetails, Receiver, preview};

/// Whose hours.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Previewed {
    /// The channel
    #[param(value_type = ChannelName)]
    channel: String,
    /// The recipient's number, its `+` written as `%2B`. Needed for channels by telephone; others
    /// have the account's zone unless `recipient_timezone` names one
    #[param(example = "+447700900123")]
    phone: Option<String>,
    /// The recipient's time zone by its IANA name, as a message may give it
    #[param(example = "Europe/London")]
    recipient_timezone: Option<String>,
}

/// What quiet hours say of a recipient now.
#[derive(Debug, Serialize, ToSchema)]
pub struct QuietView {
    /// Whether a message may go out now.
    pub allowed_now: bool,
    /// `within_window`, `quiet_hours_off` (the account has none), `any_hour` (this channel has no
    /// window); or, while it may not go out: `outside_window`, `never_within_window` (the possible
    /// zones are never within it at once), `policy_unreadable` (an operator has to mend the account).
    pub reason: &'static str,
    /// The zone that decides: while sending is allowed the one whose window closes first, else the one
    /// that opens last. Null where no window holds.
    #[schema(example = "Europe/London")]
    pub local_timezone: Option<String>,
    /// What the possible zones are known by: `recipient` (the message names it), `number`, `account`.
    pub timezone_source: Option<&'static str>,
    /// Every zone that the recipient may be in. All of them must allow.
    pub possible_timezones: Vec<String>,
    /// When the window opens each day, by the wall clock of the deciding zone.
    #[schema(example = "08:00")]
    pub window_start_local: Option<String>,
    /// When it closes; `24:00` is the end of the day. An end before the start is on the next day.
    #[schema(example = "21:00")]
    pub window_end_local: Option<String>,
    /// While sending is not allowed: when it is, if within eight days.
    #[schema(format = DateTime)]
    pub next_allowed_at: Option<String>,
}

impl From<QuietDetails> for QuietView {
    fn from(details: QuietDetails) -> Self {
        Self {
            allowed_now: details.reason.allows(),
            reason: details.reason.as_str(),
            local_timezone: details.local_timezone,
            timezone_source: details.source.map(ZoneSource::as_str),
            possible_timezones: details.possible_timezones,
            window_start_local: details.window_start_local,
            window_end_local: details.window_end_local,
            next_allowed_at: details.next_allowed_at.map(|at| format!("{at:.3}")),
        }
    }
}

/// Preview quiet hours
///
/// Whether a message to this recipient may go out now, and when else: the answer of the gate that the
/// message would meet.
#[utoipa::path(
    get,
    path = "/api/v1/compliance/quiet-hours/preview",
    tag = "compliance",
    operation_id = "previewQuietHours",
    params(Previewed),
    responses(
        (status = 200, description = "What quiet hours say", body = Envelope<QuietView>),
        ReadErrors,
    ),
    security(("api_key" = [])),
)]
pub async fn preview_quiet_hours(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(asked): Query<Previewed>,
) -> ApiResult<Reply<QuietView>> {
    caller.may(KeyScope::Read)?;
    let channel = channel_of(&asked.channel)?;
    let number = number(channel, asked.phone.as_deref(), app.default_region)?;
    let zone = asked.recipient_timezone.as_deref().map(parse_zone);
    let zone = zone
        .transpose()
        .map_err(|error| ApiError::validation("recipient_timezone", None, error.to_string()))?;
    let policy = app.policy(&caller.account)?.ok_or_else(|| {
        ApiError::new(Code::UnknownAccount, "this account is not configured here")
    })?;
    let receiver = Receiver {
        channel,
        to: &number,
        zone: zone.as_ref(),
    };
    let details = preview(&policy, receiver, app.clock.now());
    Ok(Reply::ok(details.into()))
}

/// The number in E.164 form; on channels without numbers nothing, and nothing is looked at.
fn number(channel: Channel, phone: Option<&str>, region: Option<Region>) -> ApiResult<String> {
    if !channel.is_phone() {
        return Ok(String::new());
    }
    let Some(phone) = phone else {
        let expected = "expected a telephone number, because the channel is one by telephone";
        return Err(ApiError::validation("phone", None, expected));
    };
    // A `+` that was not encoded arrives as a blank: no number begins with one.
    let phone = match phone.strip_prefix(' ') {
        Some(rest) => format!("+{rest}"),
        None => phone.to_owned(),
    };
    normalise_number(&phone, region).map_err(|error| {
        let expected = error.to_string();
        ApiError::new(Code::InvalidPhoneNumber, format!("phone: {expected}"))
            .detail("field", "phone")
            .detail("value", serde_json::Value::Null)
            .detail("expected", expected)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plus_that_was_not_encoded_is_one() {
        let of = |channel, phone| number(channel, phone, None).ok();
        let read = Some("+447700900123".to_owned());
        assert_eq!(of(Channel::Sms, Some("+447700900123")), read);
        assert_eq!(of(Channel::Sms, Some(" 447700900123")), read);
        assert_eq!(of(Channel::Sms, Some("447700900123")), None);
        assert_eq!(of(Channel::Sms, None), None);
        assert_eq!(of(Channel::Email, None), Some(String::new()));
    }
}
