//! What became of a message, as an answer.

use axum::response::{IntoResponse as _, Response};
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::first_answers::FirstAnswer;
use super::rate::Rate;
use super::settled::No;
use crate::api::error::{ApiError, Code};
use crate::api::reply::Reply;
use crate::domain::{Job, Lane, Limit, Outcome, Refusal};

/// A message that was accepted.
#[derive(Debug, Serialize, ToSchema)]
pub struct Accepted {
    /// Its id.
    #[schema(
        example = "msg_5e1c0f6f2a4b4c0e9d1a7b3c8e2f4a6d",
        pattern = "^msg_[0-9a-f]{32}$"
    )]
    pub message_id: String,
    /// The channel.
    pub channel: &'static str,
    /// The recipient, in the form in which it is sent to.
    pub to: String,
    /// `queued`: it is stored, and will be sent or refused for a reason.
    pub status: &'static str,
    /// The lane that it goes by.
    pub traffic_lane: &'static str,
    /// When it was accepted.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Only of messages that wait: until when, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub waits_until: Option<String>,
}

impl Accepted {
    /// A message that was accepted so.
    #[must_use]
    pub fn of(job: &Job, answer: FirstAnswer) -> Self {
        Self {
            message_id: job.head.id.to_string(),
            channel: job.channel.as_str(),
            to: job.to.to_string(),
            status: "queued",
            traffic_lane: answer.lane.as_str(),
            created_at: format!("{:.3}", answer.at),
            waits_until: answer.waits_until.map(|until| format!("{until:.3}")),
        }
    }
}

/// The answer, with the lane's ceiling in its headers.
pub(super) fn with_rate(answer: Result<Accepted, ApiError>, rate: Option<Rate>) -> Response {
    let mut response = match answer {
        Ok(accepted) => Reply::accepted(accepted).into_response(),
        Err(error) => error.into_response(),
    };
    if let Some(rate) = rate {
        rate.tell(response.headers_mut());
    }
    response
}

/// What a client is told of a message that was not accepted.
pub(super) fn error_of(no: No, job: &Job) -> ApiError {
    let lane = job.lane();
    match no {
        No::UnknownAccount => {
            ApiError::new(Code::UnknownAccount, "this account is not configured here")
        }
        No::AccountPaused => ApiError::new(
            Code::AccountPaused,
            "this account is paused: nothing is accepted until it is resumed",
        ),
        No::Refused {
            outcome,
            detail,
            next_allowed_at,
        } => refused(outcome, detail.as_deref(), next_allowed_at),
        No::Capped {
            capped,
            limit,
            window,
            at_ms,
        } => {
            let wait = capped.until_ms.saturating_sub(at_ms).div_ceil(1_000).max(1);
            let message = format!(
                "the recipient has had {limit} messages within {} s, as many as the cap {} allows",
                window.as_secs(),
                capped.cap
            );
            ApiError::new(Code::FrequencyCapExceeded, message)
                .retry_after(wait)
                .detail("cap", &*capped.cap)
                .detail("limit", limit)
                .detail("window", format!("{}s", window.as_secs()))
        }
        No::Shed { limit, per_second } => shed(limit, per_second, lane),
        No::Unrecorded(error) => error.into(),
        No::NotPublished(error) => {
            tracing::warn!(%error, "a message was not accepted");
            ApiError::unavailable(
                "the broker does not take messages just now; this one is not queued: try again",
            )
            .detail("queued", false)
        }
        No::Unmetered => ApiError::unavailable(
            "the message could not be counted; it is not queued: try again",
        )
        .detail("queued", false),
        No::Unknown => ApiError::unavailable(
            "nobody has confirmed in time that the message is stored; it may yet be sent: repeat the \
             request with the same Idempotency-Key",
        )
        .detail("queued", "unknown"),
    }
}

fn refused(outcome: Outcome, detail: Option<&str>, next: Option<Timestamp>) -> ApiError {
    match refusal_of(outcome) {
        Some(Refusal::OptedOut) => {
            ApiError::new(Code::RecipientOptedOut, "the recipient has opted out")
        }
        Some(Refusal::QuietHours) => {
            let error = ApiError::new(
                Code::QuietHours,
                "it is outside the hours in which the recipient may be written to",
            );
            let error = match detail {
                Some(detail) => error.detail("detail", detail),
                None => error,
            };
            let next = next.map(|next| format!("{next:.3}"));
            error.detail("next_allowed_at", next)
        }
        _ if outcome == Outcome::Cancelled => ApiError::new(
            Code::SendingCancelled,
            "the account, campaign, journey or batch that the message belongs to is cancelled",
        ),
        _ => ApiError::new(Code::Forbidden, "this message may not be sent")
            .detail("reason", outcome.reason()),
    }
}

fn shed(limit: Limit, per_second: u32, lane: Lane) -> ApiError {
    let lane = lane.as_str();
    let (what, name) = match limit {
        Limit::Number => ("the sender number", Some("number")),
        Limit::Service => ("the messaging service", Some("service")),
        Limit::Lane | Limit::Claim => ("the account", None),
    };
    let message = match name {
        None => format!(
            "the {lane} lane of this account has reached {per_second} messages per second; try again in a second"
        ),
        Some(_) => {
            format!("{what} has reached {per_second} messages per second; try again in a second")
        }
    };
    let error = ApiError::new(Code::RateLimitExceeded, message)
        .retry_after(1)
        .detail("limit", per_second)
        .detail("window", "1s");
    match name {
        None => error.detail("traffic_lane", lane),
        Some(name) => error.detail("limit_type", name),
    }
}

/// The refusal, if that is how it would have ended.
const fn refusal_of(outcome: Outcome) -> Option<Refusal> {
    match outcome {
        Outcome::Refused(refusal) => Some(refusal),
        _ => None,
    }
}
