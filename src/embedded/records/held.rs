//! What waits of an account, and what of it is paused.

use super::MemoryRecords;
use crate::domain::AccountId;
use crate::overview::Held;

impl MemoryRecords {
    /// What waits of an account, and up to so many of the things of it that are paused.
    #[must_use]
    pub fn held(&self, account: &AccountId, most: usize) -> Held {
        let kept = self.kept();
        let mut held = Held::default();
        let mine = kept.waiting.iter().map(|row| &row.job);
        for job in mine.filter(|job| job.account == *account) {
            let lane = &mut held.waiting[job.lane.index()];
            lane.jobs += 1;
            let queued = job
                .headers
                .enqueued_ms
                .and_then(|ms| i64::try_from(ms).ok());
            let queued = queued.and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
            lane.since = lane.since.into_iter().chain(queued).min();
        }
        held.holds = kept.holds.newest(account, most);
        held
    }
}
