//! The records in PostgreSQL.

use std::borrow::Cow;
use std::sync::Arc;

use tokio::time::timeout;

use crate::accounts::{self, Directory};
use crate::dispatch::ports::{Ended, Facts, Gap, Inquiry, Records, RecordsError, WaitingJob};
use crate::domain::{AccountId, Channel, JobId};
use crate::ledger::{self, RecipientForm};
use crate::postgres::{Database, records_error};
use crate::waiting;

/// Opt-outs, holds, waiting jobs and the ledger, in one database.
#[derive(Debug)]
pub struct PgRecords {
    database: Database,
    directory: Arc<Directory>,
    recipients: RecipientForm,
    /// Whom a probe asks about: nobody's.
    nobody: (AccountId, JobId),
}

impl PgRecords {
    /// Records in that database. They answer once `directory` has been loaded from it, because no
    /// job may be decided on by the policies of nobody. The ledger keeps recipients in the form of
    /// `recipients`.
    ///
    /// # Panics
    /// Never.
    #[must_use]
    pub fn new(database: Database, directory: Arc<Directory>, recipients: RecipientForm) -> Self {
        let account = AccountId::parse("probe").expect("letters make an account's id");
        let id = JobId::parse("probe").expect("letters make a job's id");
        Self {
            database,
            directory,
            recipients,
            nobody: (account, id),
        }
    }

    /// What has to be done as a whole, over connections of its own choice.
    async fn within_limit<T>(
        &self,
        work: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, RecordsError> {
        match timeout(self.database.limit(), work).await {
            Ok(done) => done.map_err(|error| records_error(&error)),
            Err(_) => Err(RecordsError::TimedOut),
        }
    }
}

impl Records for PgRecords {
    fn exist(&self) -> bool {
        true
    }

    async fn facts(&self, inquiries: &[Inquiry<'_>]) -> Result<Vec<Facts>, RecordsError> {
        let asking = async |connection: &mut sqlx::PgConnection| {
            accounts::facts(connection, inquiries).await
        };
        self.database.ask(asking).await
    }

    async fn keep(&self, jobs: &[WaitingJob]) -> Result<(), RecordsError> {
        let keeping = waiting::keep(self.database.pool(), jobs);
        self.within_limit(keeping).await
    }

    async fn write(&self, ended: &[Ended]) -> Result<(), RecordsError> {
        let writing = ledger::write(self.database.pool(), ended, &self.recipients);
        self.within_limit(writing).await
    }

    async fn note_gaps(&self, gaps: &[Gap]) -> Result<(), RecordsError> {
        let noting = ledger::note_gaps(self.database.pool(), gaps);
        self.within_limit(noting).await
    }

    /// Asks what the pipeline would ask: what it shows is what jobs will meet.
    async fn probe(&self) -> Result<(), RecordsError> {
        if !self.directory.is_loaded() {
            return Err(RecordsError::Unreachable);
        }
        let (account, id) = &self.nobody;
        let inquiry = Inquiry {
            account,
            id,
            channel: Channel::Sms,
            recipient: Cow::Borrowed("nobody"),
            campaign: None,
            journey: None,
            batch: None,
            enqueued_ms: None,
            maybe_sent: true,
        };
        self.facts(&[inquiry]).await.map(drop)
    }
}
