//! What became of a batch's jobs, asked of whatever keeps it.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use sqlx::PgConnection;

use crate::api::store::Store;
use crate::dispatch::ports::RecordsError;
use crate::domain::AccountId;
use crate::ledger::{self, BatchEnd, batch_ends};
use crate::waiting::batch_waiting;

/// Workers' clocks may be behind the database's by so much.
const CLOCKS: SignedDuration = SignedDuration::from_secs(60);

/// What became of a batch's jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Figures {
    pub(super) dispatched: u64,
    /// By reason.
    pub(super) refused: BTreeMap<String, u64>,
    /// By reason.
    pub(super) failed: BTreeMap<String, u64>,
    pub(super) expired: u64,
    pub(super) cancelled: u64,
    /// By reason.
    pub(super) waiting: BTreeMap<String, u64>,
    /// Whether jobs may have ended of which the ledger was not told.
    pub(super) has_gap: bool,
}

impl Figures {
    /// Jobs that have ended.
    pub(super) fn ended(&self) -> u64 {
        let by_reason = self.refused.values().chain(self.failed.values());
        self.dispatched + self.expired + self.cancelled + by_reason.sum::<u64>()
    }

    /// Jobs that wait.
    pub(super) fn waits(&self) -> u64 {
        self.waiting.values().sum()
    }

    fn of(ends: Vec<BatchEnd>, waiting: Vec<(String, u64)>) -> Self {
        let mut figures = Self {
            waiting: waiting.into_iter().collect(),
            ..Self::default()
        };
        for end in ends {
            let reason = end.reason.unwrap_or_else(|| "unknown".to_owned());
            match &*end.outcome {
                "dispatched" => figures.dispatched += end.jobs,
                "expired" => figures.expired += end.jobs,
                "cancelled" => figures.cancelled += end.jobs,
                "failed" => *figures.failed.entry(reason).or_default() += end.jobs,
                // A newer worker may know another outcome.
                _ => *figures.refused.entry(reason).or_default() += end.jobs,
            }
        }
        figures
    }
}

/// Counts what became of the jobs of a batch that was first uploaded then.
///
/// # Errors
/// When the database does not answer in time.
pub(super) async fn figures(
    store: &Store,
    account: &AccountId,
    batch: &str,
    since: Timestamp,
) -> Result<Figures, RecordsError> {
    match store {
        Store::Postgres(database) => {
            let since = since.checked_sub(CLOCKS).unwrap_or(since);
            let day = TimeZone::UTC.to_datetime(since).date();
            let asking = async |connection: &mut PgConnection| {
                let account = account.as_str();
                // In this order no job is counted twice: what has ended waits no more.
                let ends = batch_ends(connection, account, batch, day).await?;
                let waiting = batch_waiting(connection, account, batch).await?;
                let has_gap = ledger::has_gap(connection, account, since).await?;
                Ok(Figures {
                    has_gap,
                    ..Figures::of(ends, waiting)
                })
            };
            database.ask(asking).await
        }
        Store::Memory(records) => {
            let (ends, waiting) = records.of_batch(account, batch);
            Ok(Figures {
                has_gap: records.has_gap(since),
                ..Figures::of(ends, waiting)
            })
        }
    }
}
