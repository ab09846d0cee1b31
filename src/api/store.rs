//! What only the API asks and writes, beside the pipeline's records.

use crate::embedded::MemoryRecords;
use crate::postgres::Database;

/// Where it is kept.
#[derive(Debug, Clone)]
pub enum Store {
    /// In PostgreSQL.
    Postgres(Database),
    /// In this process, which ends with it.
    Memory(MemoryRecords),
}
