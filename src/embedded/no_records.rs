//! No records at all.

use crate::dispatch::ports::{Ended, Facts, Gap, Inquiry, Records, RecordsError, WaitingJob};

/// No database.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoRecords;

impl Records for NoRecords {
    fn exist(&self) -> bool {
        false
    }

    async fn facts(&self, inquiries: &[Inquiry<'_>]) -> Result<Vec<Facts>, RecordsError> {
        Ok(inquiries.iter().map(|_| Facts::default()).collect())
    }

    async fn keep(&self, jobs: &[WaitingJob]) -> Result<(), RecordsError> {
        if jobs.is_empty() {
            Ok(())
        } else {
            Err(RecordsError::Unreachable)
        }
    }

    async fn write(&self, _: &[Ended]) -> Result<(), RecordsError> {
        Ok(())
    }

    async fn note_gaps(&self, _: &[Gap]) -> Result<(), RecordsError> {
        Ok(())
    }

    async fn probe(&self) -> Result<(), RecordsError> {
        Ok(())
    }
}
