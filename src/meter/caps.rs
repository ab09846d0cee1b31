//! Frequency caps counted in this process: which jobs each recipient has had, and when.

use std::time::Duration;

use tokio::time::Instant;

use super::claims::Moment;
use super::expiring::Expiring;
use super::standing::CapNow;
use crate::dispatch::ports::{CapKey, CapRequest, JobRequest};
use crate::domain::{AccountId, Capped, JobId};

type Key = (AccountId, CapKey);
/// The jobs that a cap counts for one recipient, by when they were admitted.
type Jobs = Vec<(Instant, JobId)>;

/// The counts of frequency caps. Each one lasts for as long as its newest job counts.
#[derive(Debug)]
pub(super) struct CapBook {
    counts: Expiring<Key, Jobs>,
}

impl CapBook {
    /// A book of at most `bound` counts.
    pub(super) fn new(bound: usize) -> Self {
        Self {
            counts: Expiring::new(bound),
        }
    }

    /// The first of a job's caps that is full, if one is. A job that a cap counts already passes
    /// that one.
    pub(super) fn full(
        &self,
        account: &AccountId,
        job: &JobRequest,
        now: Moment,
    ) -> Option<Capped> {
        let full = |cap: &CapRequest| {
            let counted = self.counted(account, cap, now.instant);
            let limit = usize::try_from(cap.limit).unwrap_or(usize::MAX);
            let is_full = counted.len() >= limit && counted.iter().all(|(_, id)| *id != job.id);
            is_full.then(|| {
                let leaver = counted.get(counted.len() - limit);
                let since = leaver.map_or(now.instant, |(since, _)| *since);
                Capped {
                    cap: cap.key.cap.clone(),
                    until_ms: at_ms(since + cap.window, now),
                }
            })
        };
        job.caps.iter().find_map(full)
    }

    /// How each of a job's caps stands.
    pub(super) fn look(&self, account: &AccountId, job: &JobRequest, now: Instant) -> Vec<CapNow> {
        let look = |cap: &CapRequest| {
            let counted = self.counted(account, cap, now);
            CapNow {
                counted: u32::try_from(counted.len()).unwrap_or(u32::MAX),
                holds_job: counted.iter().any(|(_, id)| *id == job.id),
            }
        };
        job.caps.iter().map(look).collect()
    }

    /// Counts a job that passes, by each of its caps that does not count it already.
    pub(super) fn join(&mut self, account: &AccountId, job: &JobRequest, now: Instant) {
        for cap in &job.caps {
            let mut counted = self.counted(account, cap, now).to_vec();
            if counted.iter().all(|(_, id)| *id != job.id) {
                counted.push((now, job.id.clone()));
                let key = (account.clone(), cap.key.clone());
                self.counts.put(key, counted, now + cap.window, now);
            }
        }
    }

    /// A job that was not sent is counted no more.
    pub(super) fn leave(&mut self, account: &AccountId, id: &JobId, caps: &[CapKey], now: Instant) {
        for cap in caps {
            let key = (account.clone(), cap.clone());
            if let Some(jobs) = self.counts.get_mut(&key, now) {
                jobs.retain(|(_, counted)| counted != id);
            }
        }
    }

    /// What a cap counts now, oldest first.
    fn counted(&self, account: &AccountId, cap: &CapRequest, now: Instant) -> &[(Instant, JobId)] {
        if self.counts.is_empty() {
            return &[];
        }
        let key = (account.clone(), cap.key.clone());
        let jobs = self.counts.get(&key, now).map_or(&[][..], Vec::as_slice);
        let gone = jobs.partition_point(|(since, _)| *since + cap.window <= now);
        &jobs[gone..]
    }
}

/// An instant by the wall clock, in milliseconds since the Unix epoch.
fn at_ms(instant: Instant, now: Moment) -> u64 {
    let left = instant.saturating_duration_since(now.instant);
    let now_ms = u64::try_from(now.wall.as_millisecond()).unwrap_or(0);
    now_ms.saturating_add(millis_rounded_up(left))
}

fn millis_rounded_up(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;

    use super::*;
    use crate::dispatch::ports::{Door, TryId};
    use crate::domain::Lane;

    const WINDOW: Duration = Duration::from_secs(60);

    fn job(number: usize, recipient: usize) -> JobRequest {
        let key = CapKey {
            cap: Arc::from("daily"),
            recipient: Arc::from(recipient.to_string()),
        };
        let cap = CapRequest {
            key,
            limit: 2,
            window: WINDOW,
        };
        JobRequest {
            id: JobId::parse(&format!("job-{number}")).unwrap(),
            lane: Lane::Marketing,
            door: Door::Worker,
            try_id: TryId(0),
            claim_for: WINDOW,
            caps: vec![cap],
            number: None,
            service: None,
        }
    }

    fn at(instant: Instant) -> Moment {
        let wall = Timestamp::from_second(1_000).unwrap();
        Moment { instant, wall }
    }

    #[test]
    fn memory_holds_what_is_in_use_and_no_more_than_the_bound() {
        let account = AccountId::parse("acct").unwrap();
        let mut book = CapBook::new(10);
        let start = Instant::now();
        for recipient in 0..100 {
            book.join(&account, &job(recipient, recipient), start);
        }
        assert_eq!(book.counts.len(), 10);
        // What has left its window makes room.
        book.join(&account, &job(100, 100), start + WINDOW);
        assert_eq!(book.counts.len(), 1);
        // And so do the jobs of one recipient.
        for number in 0..50 {
            let now = start + WINDOW + WINDOW / 2 * (number + 1);
            book.join(&account, &job(number as usize, 100), now);
            let cap = &job(0, 100).caps[0];
            assert!(book.counted(&account, cap, now).len() <= 2);
            assert!(
                book.counts
                    .kept(&(account.clone(), cap.key.clone()))
                    .unwrap()
                    .len()
                    <= 2
            );
        }
    }

    #[test]
    fn a_full_cap_tells_when_its_oldest_job_leaves() {
        let account = AccountId::parse("acct").unwrap();
        let mut book = CapBook::new(10);
        let start = Instant::now();
        for number in 0..2u32 {
            let now = start + Duration::from_secs(10) * number;
            book.join(&account, &job(number as usize, 0), now);
        }
        let later = at(start + Duration::from_secs(25));
        let full = book.full(&account, &job(2, 0), later).unwrap();
        assert_eq!((&*full.cap, full.until_ms), ("daily", 1_035_000));
        // One that it counts already passes.
        assert_eq!(book.full(&account, &job(1, 0), later), None);
        let at_the_end = at(start + WINDOW);
        assert_eq!(book.full(&account, &job(2, 0), at_the_end), None);
    }
}
