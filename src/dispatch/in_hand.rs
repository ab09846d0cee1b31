//! A job between its delivery and its settlement.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::ports::{Receipt, Requeue, Route, TryId};
use crate::domain::{AccountId, Job, JobHeaders, Lane, Limit};

/// A job that this worker holds and the broker still counts as unsettled.
#[derive(Debug)]
pub(super) struct InHand {
    pub job: Box<Job>,
    pub receipt: Receipt,
    pub headers: JobHeaders,
    /// When it arrived in this process.
    pub received_at: Instant,
    /// The first instant from which it has waited for its account's window, in this worker.
    pub held_since: Option<Instant>,
    /// Place of its carrier in the fleet.
    pub carrier: usize,
    /// Whether this try shall show if the carrier, which was out, is back.
    pub is_trial: bool,
    /// Carrier tries so far, on earlier rounds and in this worker.
    pub attempts: u32,
    /// An earlier try in this worker ended without a known result, and no send since was counted
    /// as a possible duplicate.
    pub maybe_sent: bool,
    /// Whether the meter itself has said of this job that there is no room in the present window.
    pub turned_away: bool,
}

/// Why a job leaves this worker for a queue again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Departure {
    /// A limit was reached.
    Shed(Limit),
    /// Its carrier is out.
    Park,
}

impl InHand {
    pub fn lane(&self) -> Lane {
        self.job.lane()
    }

    pub fn account(&self) -> &AccountId {
        &self.job.head.account
    }

    /// The job as a message for its next round.
    pub fn requeue(&self, departure: Departure) -> Requeue {
        let known = JobHeaders {
            enqueued_ms: self.enqueued_ms(),
            attempts: self.attempts,
            ..self.headers
        };
        let (route, headers) = match departure {
            Departure::Shed(_) => (Route::Shed, known.after_shed()),
            Departure::Park => (Route::Park, known.after_park(self.attempts)),
        };
        Requeue {
            id: self.job.head.id.clone(),
            account: self.account().clone(),
            lane: self.lane(),
            route,
            headers,
            payload: self.job.payload.clone(),
        }
    }

    /// How long the job has waited since it was queued, or since it arrived here where its
    /// publisher did not say when that was.
    pub fn waited(&self, now: Timestamp, here: Instant) -> Duration {
        let since_queued = self.enqueued_ms().and_then(|queued| {
            let now = u64::try_from(now.as_millisecond()).ok()?;
            now.checked_sub(queued).map(Duration::from_millis)
        });
        since_queued.unwrap_or_else(|| here.duration_since(self.received_at))
    }

    fn enqueued_ms(&self) -> Option<u64> {
        let stated = || {
            self.job
                .head
                .enqueued_at
                .and_then(|at| u64::try_from(at.as_millisecond()).ok())
        };
        self.headers.enqueued_ms.or_else(stated)
    }
}

/// A job that a carrier is trying, or has tried.
#[derive(Debug)]
pub(super) struct Try {
    pub in_hand: InHand,
    pub try_id: TryId,
}
