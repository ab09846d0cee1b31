//! What waits of an account, and what of it is paused.

use super::MemoryRecords;
use crate::accounts::hold_name;
use crate::domain::AccountId;
use crate::overview::{Held, HoldNow};

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
        let holds = kept.holds.iter().filter(|((of, ..), _)| of == account);
        let holds = holds.map(|((_, kind, id), hold)| HoldNow {
            kind,
            id: id.clone(),
            state: hold_name(*hold),
            reason: None,
            since: None,
        });
        held.holds = holds.collect();
        held.holds
            .sort_by(|a, b| (a.kind, &a.id).cmp(&(b.kind, &b.id)));
        held.holds.truncate(most);
        held
    }
}
