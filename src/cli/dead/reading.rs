//! What the present decoder makes of a dead message.

use crate::domain::{Decoded, JobHead, Payload, Region};
use crate::intake::decode::decode;

/// What reading it gives now.
pub(super) enum Reading {
    /// A job.
    Job(Box<JobHead>),
    /// A job that workers refuse; the reason and what was expected.
    Refused(Box<JobHead>, &'static str, String),
    /// Still none; what is wrong.
    Undecodable(String),
}

impl Reading {
    pub(super) fn of(payload: &Payload, region: Option<Region>) -> Self {
        match decode(payload.to_bytes(), region).decoded {
            Decoded::Job(job) => Self::Job(Box::new(job.head)),
            Decoded::Invalid {
                head,
                field,
                detail,
            } => Self::Refused(head, field.invalid_reason(), detail),
            Decoded::Undecodable { detail, .. } => Self::Undecodable(detail),
        }
    }

    /// Whose job it is, if it is one.
    pub(super) fn head(&self) -> Option<&JobHead> {
        match self {
            Self::Job(head) | Self::Refused(head, ..) => Some(head),
            Self::Undecodable(_) => None,
        }
    }
}

impl std::fmt::Display for Reading {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Job(head) => write!(
                f,
                "a job for the {} lane of account {}: it can be replayed",
                head.lane, head.account
            ),
            Self::Refused(_, reason, detail) => {
                write!(f, "a job that workers refuse, {reason}: {detail}")
            }
            Self::Undecodable(detail) => write!(f, "still undecodable: {detail}"),
        }
    }
}
