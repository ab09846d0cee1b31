//! The database of a simulated run.

use tokio::time::Instant;

use super::Outside;
use crate::dispatch::ports::{Ended, Facts, Gap, Inquiry, Records, RecordsError, WaitingJob};
use crate::embedded::MemoryRecords;

/// The records, as one worker reaches them.
pub struct UnsureRecords {
    pub records: MemoryRecords,
    pub worker: usize,
    pub outside: Outside,
}

impl UnsureRecords {
    async fn fate(&self) -> Result<(), RecordsError> {
        self.outside.pass(5).await;
        if self.outside.is_within(&self.outside.plan.records_outages) {
            self.outside.pass(100).await;
            return Err(RecordsError::Unreachable);
        }
        if self.outside.happens(self.outside.plan.faults.records_fail) {
            return Err(RecordsError::Failed);
        }
        Ok(())
    }

    async fn answer<T>(&self, answer: Result<T, RecordsError>) -> Result<T, RecordsError> {
        self.outside.pass(5).await;
        let lost = self.outside.plan.faults.records_reply_lost;
        if self.outside.happens(lost) {
            return Err(RecordsError::TimedOut);
        }
        answer
    }
}

impl Records for UnsureRecords {
    fn exist(&self) -> bool {
        self.outside.plan.records
    }

    async fn facts(&self, inquiries: &[Inquiry<'_>]) -> Result<Vec<Facts>, RecordsError> {
        // All of one lane: it is asked for before it is known what the answer will be.
        let ids = inquiries.iter().map(|one| one.id.as_str());
        let first = inquiries[0].id.as_str().parse::<usize>().unwrap();
        let lane = self.outside.plan.jobs[first].lane;
        self.outside.check_order(self.worker, lane, ids);
        self.fate().await?;
        let began = Instant::now();
        let facts = self.records.facts(inquiries).await;
        let facts = self.answer(facts).await?;
        let mut seen = self.outside.seen();
        for one in inquiries {
            seen.looked_up.insert(one.id.to_string(), began);
        }
        Ok(facts)
    }

    async fn keep(&self, jobs: &[WaitingJob]) -> Result<(), RecordsError> {
        self.fate().await?;
        let kept = self.records.keep(jobs).await;
        self.answer(kept).await
    }

    async fn write(&self, ended: &[Ended]) -> Result<(), RecordsError> {
        self.fate().await?;
        let written = self.records.write(ended).await;
        self.answer(written).await
    }

    async fn note_gaps(&self, gaps: &[Gap]) -> Result<(), RecordsError> {
        self.fate().await?;
        let noted = self.records.note_gaps(gaps).await;
        self.answer(noted).await
    }

    async fn probe(&self) -> Result<(), RecordsError> {
        self.fate().await
    }
}
