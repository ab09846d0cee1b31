//! How far the uploads of batches have come, and which of their rows were rejected: in PostgreSQL,
//! or in this process. Nothing of what is kept holds a recipient or a text.
//!
//! One upload of a batch runs at a time. It holds the batch by a lease, which it renews with every
//! note; a run whose lease has passed to another finds that out at its next note, and stops. So a
//! server that dies keeps nobody away for longer than [`LEASE`].

mod memory;
mod postgres;
mod record;

pub use memory::MemoryUploads;
pub use postgres::{PgUploads, forget_old};
pub use record::{Begun, Contents, Difference, End, Lease, Note, Place, Upload};

use std::time::Duration;

use jiff::Timestamp;

use crate::batch::RowError;
use crate::dispatch::ports::RecordsError;
use crate::domain::AccountId;

/// How long a lease holds after it was last renewed. Should be a multiple of the pause between two
/// renewals.
pub const LEASE: Duration = Duration::from_secs(10);

/// The most rejected rows of one batch that are kept. All of them are counted.
pub const MOST_REJECTIONS: u64 = 100_000;

/// The uploads of all accounts.
#[derive(Debug)]
pub enum Uploads {
    /// They are in this process, and end with it.
    Memory(MemoryUploads),
    /// They are in PostgreSQL.
    Postgres(PgUploads),
}

impl Uploads {
    /// What is known of a batch; `None` where it was never uploaded.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn find(
        &self,
        account: &AccountId,
        batch: &str,
    ) -> Result<Option<Upload>, RecordsError> {
        match self {
            Self::Memory(uploads) => Ok(uploads.find(account, batch)),
            Self::Postgres(uploads) => uploads.find(account, batch).await,
        }
    }

    /// Takes a batch over for one run, unless another one has it, it is finished, or it has other
    /// contents. Of a batch that is new, every job says that it was queued at `now`.
    ///
    /// # Errors
    /// When the database does not answer. The batch may have been taken over all the same.
    pub async fn begin(
        &self,
        place: &Place<'_>,
        contents: &Contents,
        now: Timestamp,
    ) -> Result<Begun, RecordsError> {
        match self {
            Self::Memory(uploads) => Ok(uploads.begin(place, contents, now)),
            Self::Postgres(uploads) => uploads.begin(place, contents, now).await,
        }
    }

    /// Notes how far a run has come, and renews its lease, or gives it back with the run's end.
    /// `false`: another run has the batch by now, and nothing was noted. Noting the same twice
    /// changes nothing.
    ///
    /// # Errors
    /// When the database does not answer. It may have been noted all the same.
    pub async fn note(&self, place: &Place<'_>, note: &Note<'_>) -> Result<bool, RecordsError> {
        match self {
            Self::Memory(uploads) => Ok(uploads.note(place, note)),
            Self::Postgres(uploads) => uploads.note(place, note).await,
        }
    }

    /// Rejected rows of a batch from behind a line on, in order, `most` at most.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn rejections(
        &self,
        account: &AccountId,
        batch: &str,
        behind: u64,
        most: u32,
    ) -> Result<Vec<RowError>, RecordsError> {
        match self {
            Self::Memory(uploads) => Ok(uploads.rejections(account, batch, behind, most)),
            Self::Postgres(uploads) => uploads.rejections(account, batch, behind, most).await,
        }
    }
}
