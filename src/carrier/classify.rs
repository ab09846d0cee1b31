//! What a carrier's answer, or the lack of one, means for the job. The only place that decides it.
//!
//! | what happened | verdict |
//! | --- | --- |
//! | 2xx | accepted |
//! | 429 | throttled: not sent, and the carrier is at work |
//! | 503; a connection that never came about | not sent: the carrier says so, or never heard of it |
//! | 3xx | not sent: redirects are not followed, because a moved carrier is a mistake in the settings, and the jobs must outlive its repair |
//! | 408, 425, other 5xx, 101 and numbers from no list; a time-out after the request was sent; a connection that broke | unknown: it may or may not have been taken |
//! | other 4xx | rejected for good |

use std::borrow::Cow;
use std::error::Error as _;
use std::io;

use reqwest::StatusCode;

use crate::dispatch::ports::{SendError, SendVerdict};

/// The verdict on a status; `None` when the carrier accepted.
pub(super) fn of_status(status: StatusCode) -> Option<SendVerdict> {
    match status.as_u16() {
        200..=299 => None,
        429 => Some(SendVerdict::Throttled),
        503 | 300..=399 => Some(SendVerdict::NotSent),
        408 | 425 => Some(SendVerdict::Unknown),
        400..=499 => Some(SendVerdict::Rejected),
        _ => Some(SendVerdict::Unknown),
    }
}

/// The verdict on a call without a usable answer. The text is ours: the client's own texts hold
/// the URL.
pub(super) fn of_error(error: &reqwest::Error) -> SendError {
    let (verdict, detail) = if error.is_connect() {
        let why = io_kind(error).unwrap_or("no further reason known".into());
        let detail = format!("could not connect to the carrier: {why}");
        (SendVerdict::NotSent, Cow::Owned(detail))
    } else if error.is_timeout() {
        let detail = "the carrier did not answer in time".into();
        (SendVerdict::Unknown, detail)
    } else if error.is_builder() {
        let detail = "the request to the carrier could not be built".into();
        (SendVerdict::NotSent, detail)
    } else {
        let detail = "the connection to the carrier broke before its answer".into();
        (SendVerdict::Unknown, detail)
    };
    SendError {
        verdict,
        retry_after: None,
        detail,
    }
}

/// Why there is no connection, in words from a closed list.
fn io_kind(error: &reqwest::Error) -> Option<Cow<'static, str>> {
    if error.is_timeout() {
        return Some("timed out".into());
    }
    if error.is_dns() {
        return Some("its host name cannot be looked up".into());
    }
    let mut source = error.source();
    let mut kind = None;
    while let Some(cause) = source {
        if let Some(error) = cause.downcast_ref::<io::Error>() {
            kind = Some(error.kind().to_string().into());
        }
        source = cause.source();
    }
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_its_verdict() {
        let verdict = |code| of_status(StatusCode::from_u16(code).unwrap());
        for code in 100..=999u16 {
            let expected = match code {
                200..=299 => None,
                429 => Some(SendVerdict::Throttled),
                300..=399 | 503 => Some(SendVerdict::NotSent),
                100..=199 | 408 | 425 | 500..=999 => Some(SendVerdict::Unknown),
                _ => Some(SendVerdict::Rejected),
            };
            assert_eq!(verdict(code), expected, "{code}");
        }
    }
}
