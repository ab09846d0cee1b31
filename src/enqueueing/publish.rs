//! One chunk published, and published again where the broker has not taken it.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::dispatch::ports::PublishError;
use crate::domain::Job;

use super::outlet::Outlet;
use super::reading::Chunk;

/// How long the broker may take nothing before the rest is given up.
const PATIENCE: Duration = Duration::from_secs(30);
/// The pause before a chunk is tried again.
const PAUSE: Duration = Duration::from_millis(500);

/// What is said of jobs of which nothing is known.
const UNANSWERED: &str = "it is not known whether the broker has stored the messages";

/// A chunk that was published as far as possible.
pub struct Done {
    /// The chunk; its counts are complete, its jobs gone.
    pub chunk: Chunk,
    /// The ids of its first and last job.
    pub ids: Option<(String, String)>,
    /// Why the rest of it was given up, where that is known.
    pub failed: Option<PublishError>,
}

impl Done {
    /// Why some of the chunk's jobs are not known to be stored; `None` when all of them are.
    #[must_use]
    pub fn shortfall(&self) -> Option<String> {
        let why = self.failed.as_ref().map(ToString::to_string);
        (self.chunk.counts.not_queued > 0).then(|| why.unwrap_or_else(|| UNANSWERED.to_owned()))
    }
}

/// Publishes a chunk, and what was not stored again, until the broker has taken nothing for too
/// long or the run has had `enough`. What is published twice has the same id. Without an
/// outlet everything counts as stored.
pub(super) async fn publish<O: Outlet>(
    outlet: Option<&O>,
    mut chunk: Chunk,
    enough: &CancellationToken,
) -> Done {
    let mut jobs = std::mem::take(&mut chunk.jobs);
    let total = jobs.len();
    let id = |job: &Job| job.head.id.to_string();
    let ids = jobs.first().map(id).zip(jobs.last().map(id));
    let mut failed = None;
    if let Some(outlet) = outlet {
        let mut progress = Instant::now();
        while !jobs.is_empty() {
            let before = jobs.len();
            failed = publish_once(outlet, &mut jobs).await;
            if jobs.len() < before {
                progress = Instant::now();
            }
            if jobs.is_empty() || progress.elapsed() >= PATIENCE || enough.is_cancelled() {
                break;
            }
            tokio::select! {
                () = enough.cancelled() => break,
                () = sleep(PAUSE) => {}
            }
        }
    } else {
        jobs.clear();
    }
    chunk.counts.queued = (total - jobs.len()) as u64;
    chunk.counts.not_queued = jobs.len() as u64;
    Done { chunk, ids, failed }
}

/// Publishes all of them, and leaves in `jobs` those that are not known to be stored.
async fn publish_once<O: Outlet>(outlet: &O, jobs: &mut Vec<Job>) -> Option<PublishError> {
    let mut failed = None;
    let mut results = outlet.queue(jobs).await.into_iter();
    jobs.retain(|_| match results.next() {
        Some(Ok(())) => false,
        Some(Err(error)) => {
            failed = Some(error);
            true
        }
        None => true,
    });
    failed
}
