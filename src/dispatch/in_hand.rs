//! A job between its delivery and its settlement.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::ports::{
    Admission, CapKey, Door, Due, Inquiry, Receipt, Requeue, Route, TryId, WaitReason, WaitingJob,
};
use crate::domain::{AccountId, Job, JobHeaders, Lane, Limit, recipient_key};

/// How far ahead of this worker's clock a publisher's may be.
const CLOCKS_DIFFER: Duration = Duration::from_secs(60);

/// A job that this worker holds and the broker still counts as unsettled.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own: any may be so while the others are not"
)]
pub(super) struct InHand {
    pub job: Box<Job>,
    pub receipt: Receipt,
    /// The lane of the queue that it came from.
    pub source_lane: Lane,
    /// Whether it came by a queue of its account's own: held there, it is in nobody's way.
    pub own_queue: bool,
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
    /// Its last admission by this worker.
    pub admission: Option<Admission>,
    /// The frequency caps that count it.
    pub caps: Vec<CapKey>,
}

/// Why a job leaves this worker without having ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Departure {
    /// A limit was reached: back after the shed delay.
    Shed(Limit),
    /// Its carrier is out: back after the park delay.
    Park,
    /// It came by the other lane's queue, and its own takes no jobs just now: on to that one.
    Astray,
    /// It waits in the database.
    Wait(WaitReason, Due),
}

impl InHand {
    pub fn lane(&self) -> Lane {
        self.job.lane()
    }

    /// Its place in the order in which jobs came.
    pub fn order(&self) -> (Instant, Receipt) {
        (self.received_at, self.receipt)
    }

    pub fn account(&self) -> &AccountId {
        &self.job.head.account
    }

    /// How it stands towards the meter. Only the admission of the round that brought it here counts,
    /// and only until it was tried.
    pub fn door(&self) -> Door {
        match self.headers.admitted_ms {
            Some(at_ms) if !self.was_tried_here() => Door::Paid { at_ms },
            _ => Door::Worker,
        }
    }

    /// Whether anything has happened to it in this worker that its message does not tell.
    pub fn was_tried_here(&self) -> bool {
        self.attempts > self.headers.attempts
    }

    /// Whether frequency caps may count it although this worker has not asked about it.
    pub fn may_be_counted(&self) -> bool {
        self.attempts > 0 || self.headers.admitted_ms.is_some()
    }

    /// The job as a message for its next round through a queue.
    pub fn requeue(&self, route: Route) -> Requeue {
        let headers = match route {
            Route::Shed => self.known().after_shed(),
            Route::Park | Route::Queue | Route::Admitted => self.known().after_park(self.attempts),
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

    /// The job as it waits in the database.
    pub fn waiting(&self, reason: WaitReason, due: Due) -> WaitingJob {
        let head = &self.job.head;
        WaitingJob {
            id: head.id.clone(),
            account: head.account.clone(),
            lane: head.lane,
            reason,
            due,
            campaign: head.campaign_id.clone(),
            journey: head.journey_id.clone(),
            batch: head.batch_id.clone(),
            headers: self.known().after_park(self.attempts),
            payload: self.job.payload.clone(),
        }
    }

    /// What has to be known before it is sent. Claims live for `claim_life`: of a job that may be
    /// older than that the ledger is asked too.
    pub fn inquiry(&self, now: Timestamp, claim_life: Duration) -> Inquiry<'_> {
        let head = &self.job.head;
        let queued = self.believable_enqueued_ms(now);
        let age = queued.map(|queued| {
            let now = u64::try_from(now.as_millisecond()).unwrap_or_default();
            Duration::from_millis(now.saturating_sub(queued))
        });
        Inquiry {
            account: &head.account,
            id: &head.id,
            channel: self.job.channel,
            recipient: recipient_key(self.job.channel, &self.job.to),
            campaign: head.campaign_id.as_deref(),
            journey: head.journey_id.as_deref(),
            batch: head.batch_id.as_deref(),
            maybe_sent: age.is_none_or(|age| age >= claim_life),
            enqueued_ms: queued,
        }
    }

    /// When it was queued first, unless that is yet to come: a job that says so would count as young
    /// for ever, and the ledger never be asked about it.
    fn believable_enqueued_ms(&self, now: Timestamp) -> Option<u64> {
        let latest = now.checked_add(CLOCKS_DIFFER).unwrap_or(Timestamp::MAX);
        let latest = u64::try_from(latest.as_millisecond()).ok()?;
        self.enqueued_ms().filter(|queued| *queued <= latest)
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

    /// When it was queued first, in milliseconds since the Unix epoch, where that is known.
    pub fn enqueued_ms(&self) -> Option<u64> {
        let stated = || {
            self.job
                .head
                .enqueued_at
                .and_then(|at| u64::try_from(at.as_millisecond()).ok())
        };
        self.headers.enqueued_ms.or_else(stated)
    }

    fn known(&self) -> JobHeaders {
        JobHeaders {
            enqueued_ms: self.enqueued_ms(),
            attempts: self.attempts,
            ..self.headers
        }
    }
}

/// A job that a carrier is trying, or has tried.
#[derive(Debug)]
pub(super) struct Try {
    pub in_hand: InHand,
    pub try_id: TryId,
}

#[cfg(test)]
mod tests {
    use super::super::test_support::in_hand;
    use super::*;

    const NOW_MS: u64 = 1_800_000_000_000;
    const CLAIM_LIFE: Duration = Duration::from_secs(900);

    fn queued(seconds_ago: i64, by_header: bool) -> InHand {
        let ms = NOW_MS.checked_add_signed(-seconds_ago * 1_000).unwrap();
        let mut job = in_hand("a", "1");
        if by_header {
            job.headers.enqueued_ms = Some(ms);
        } else {
            let stated = Timestamp::from_millisecond(ms.try_into().unwrap());
            job.job.head.enqueued_at = Some(stated.unwrap());
        }
        job
    }

    #[test]
    fn caps_may_count_what_was_tried_or_admitted_by_an_api_server() {
        let mut job = in_hand("a", "1");
        assert!(!job.may_be_counted());
        job.headers.admitted_ms = Some(NOW_MS);
        assert!(job.may_be_counted());
        job.headers.admitted_ms = None;
        job.attempts = 1;
        assert!(job.may_be_counted());
    }

    /// Seconds since the job says that it was queued; whether the ledger is asked, and whether it
    /// is told since when to look.
    #[test]
    fn the_ledger_is_asked_about_every_job_that_may_be_older_than_its_claim() {
        let table = [
            (0, false, true),
            (899, false, true),
            (900, true, true),
            (-59, false, true),
            (-61, true, false),
            (-86_400 * 365 * 100, true, false),
        ];
        let now = Timestamp::from_millisecond(NOW_MS.try_into().unwrap()).unwrap();
        for (seconds_ago, asked, since) in table {
            for by_header in [true, false] {
                let job = queued(seconds_ago, by_header);
                let inquiry = job.inquiry(now, CLAIM_LIFE);
                assert_eq!(
                    (inquiry.maybe_sent, inquiry.enqueued_ms.is_some()),
                    (asked, since),
                    "{seconds_ago}, {by_header}"
                );
            }
        }
        let unknown = in_hand("a", "1");
        assert!(unknown.inquiry(now, CLAIM_LIFE).maybe_sent);
    }
}
