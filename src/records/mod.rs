//! What is written down: in PostgreSQL, in this process, or not at all.
//!
//! The queries live with what they are about: opt-outs and holds in [`accounts`](crate::accounts),
//! jobs that wait in [`waiting`](crate::waiting), the ledger in [`ledger`](crate::ledger). Here they
//! become the one port that the pipeline knows, each with its time limit.

mod postgres;

pub use postgres::PgRecords;

use crate::dispatch::ports::{Ended, Facts, Gap, Inquiry, Records, RecordsError, WaitingJob};
use crate::embedded::{MemoryRecords, NoRecords};

/// The records of a worker.
#[derive(Debug)]
pub enum AnyRecords {
    /// No database is configured.
    None(NoRecords),
    /// They are in this process, and end with it.
    Memory(MemoryRecords),
    /// They are in PostgreSQL.
    Postgres(PgRecords),
}

impl Records for AnyRecords {
    fn exist(&self) -> bool {
        match self {
            Self::None(records) => records.exist(),
            Self::Memory(records) => records.exist(),
            Self::Postgres(records) => records.exist(),
        }
    }

    async fn facts(&self, inquiries: &[Inquiry<'_>]) -> Result<Vec<Facts>, RecordsError> {
        match self {
            Self::None(records) => records.facts(inquiries).await,
            Self::Memory(records) => records.facts(inquiries).await,
            Self::Postgres(records) => records.facts(inquiries).await,
        }
    }

    async fn keep(&self, jobs: &[WaitingJob]) -> Result<(), RecordsError> {
        match self {
            Self::None(records) => records.keep(jobs).await,
            Self::Memory(records) => records.keep(jobs).await,
            Self::Postgres(records) => records.keep(jobs).await,
        }
    }

    async fn write(&self, ended: &[Ended]) -> Result<(), RecordsError> {
        match self {
            Self::None(records) => records.write(ended).await,
            Self::Memory(records) => records.write(ended).await,
            Self::Postgres(records) => records.write(ended).await,
        }
    }

    async fn note_gaps(&self, gaps: &[Gap]) -> Result<(), RecordsError> {
        match self {
            Self::None(records) => records.note_gaps(gaps).await,
            Self::Memory(records) => records.note_gaps(gaps).await,
            Self::Postgres(records) => records.note_gaps(gaps).await,
        }
    }

    async fn probe(&self) -> Result<(), RecordsError> {
        match self {
            Self::None(records) => records.probe().await,
            Self::Memory(records) => records.probe().await,
            Self::Postgres(records) => records.probe().await,
        }
    }
}
