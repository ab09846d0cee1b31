//! What would become of a job if it came now. Nothing is changed and nothing counted by asking.
//!
//! `lanekeeper explain --dry-run` and the HTTP API's `dry_run=true` ask the same questions as the
//! pipeline, by [`inquiry_of`] and [`request_of`], and have them judged by [`judge()`].

mod judge;

use std::time::Duration;

pub use judge::{Judgement, Known, Step, judge, judge_job};

use crate::accounts::AccountPolicy;
use crate::dispatch::job_request;
use crate::dispatch::ports::{Door, Inquiry, JobRequest, TryId};
use crate::domain::{Job, recipient_key};

/// What the records are asked about a job.
#[must_use]
pub fn inquiry_of(job: &Job) -> Inquiry<'_> {
    let head = &job.head;
    Inquiry {
        account: &head.account,
        id: &head.id,
        channel: job.channel,
        recipient: recipient_key(job.channel, &job.to),
        campaign: head.campaign_id.as_deref(),
        journey: head.journey_id.as_deref(),
        batch: head.batch_id.as_deref(),
        maybe_sent: true,
        // For one job all of the ledger can be searched, whatever it says of itself.
        enqueued_ms: None,
    }
}

/// What the meter is to be looked at for.
#[must_use]
pub fn request_of(job: &Job, policy: &AccountPolicy, door: Door) -> JobRequest {
    job_request(job, policy, door, TryId(0), Duration::ZERO)
}
