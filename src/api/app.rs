//! Everything that handlers need.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::batches::BatchDesk;
use super::error::ApiResult;
use super::lanes::Watches;
use super::limits::RequestLimits;
use super::outbox::AnyOutbox;
use super::page::PageDoor;
use super::send::{Desk, DeskParts, FirstAnswers};
use super::store::Store;
use super::turns::Turns;
use crate::accounts::keys::LiveKeyRing;
use crate::accounts::{AccountPolicy, Directory};
use crate::clock::SystemClock;
use crate::dispatch::ports::{Clock, RecordsError};
use crate::domain::{AccountId, Keywords, Region};
use crate::meter::AnyMeter;
use crate::records::AnyRecords;
use crate::settings::Settings;
use crate::telemetry::Telemetry;

/// What an API server is made of.
pub struct App {
    /// Who is let in.
    pub keys: Arc<LiveKeyRing>,
    /// What operators have laid down for accounts.
    pub directory: Arc<Directory>,
    /// Opt-outs, holds, jobs that wait, the ledger.
    pub records: Arc<AnyRecords>,
    /// The budgets' keeper.
    pub meter: Arc<AnyMeter>,
    /// Where accepted jobs go.
    pub broker: Arc<AnyOutbox>,
    /// The clock of this process.
    pub clock: Arc<dyn Clock>,
    /// What only the API asks and writes.
    pub store: Store,
    /// How many requests a key may make.
    pub limits: RequestLimits,
    /// Whose turn it is to read.
    pub turns: Turns,
    /// Looks at lanes, for those who watch them.
    pub lanes: Arc<Watches>,
    /// Who may look without a key.
    pub page: PageDoor,
    /// Sends single messages.
    pub desk: Arc<Desk>,
    /// Takes batches.
    pub batches: BatchDesk,
    /// The country of numbers without a country code.
    pub default_region: Option<Region>,
    /// The words that replies are read by.
    pub keywords: Arc<Keywords>,
    /// What goes on to its end, whether or not its client still waits.
    pub tasks: TaskTracker,
    /// The server is about to stop: long answers end.
    pub stop: CancellationToken,
    /// Counts what happens.
    pub telemetry: Telemetry,
}

/// What differs between an API server on services and one that stands alone.
pub struct AppParts {
    /// See [`App::keys`].
    pub keys: Arc<LiveKeyRing>,
    /// See [`App::directory`].
    pub directory: Arc<Directory>,
    /// See [`App::records`].
    pub records: Arc<AnyRecords>,
    /// See [`App::meter`].
    pub meter: Arc<AnyMeter>,
    /// See [`App::broker`].
    pub broker: Arc<AnyOutbox>,
    /// See [`App::store`].
    pub store: Store,
    /// What was answered to idempotency keys.
    pub first_answers: FirstAnswers,
    /// See [`App::lanes`].
    pub lanes: Arc<Watches>,
    /// See [`App::page`].
    pub page: PageDoor,
    /// See [`App::batches`].
    pub batches: BatchDesk,
    /// See [`App::telemetry`].
    pub telemetry: Telemetry,
    /// See [`App::stop`].
    pub stop: CancellationToken,
}

impl App {
    /// A server of these parts that does as `settings` say.
    #[must_use]
    pub fn new(settings: &Settings, parts: AppParts) -> Self {
        let clock = Arc::new(SystemClock);
        let desk = Desk::new(DeskParts {
            directory: Arc::clone(&parts.directory),
            records: Arc::clone(&parts.records),
            meter: Arc::clone(&parts.meter),
            outbox: Arc::clone(&parts.broker),
            clock: clock.clone(),
            first_answers: parts.first_answers,
        });
        Self {
            keys: parts.keys,
            directory: parts.directory,
            records: parts.records,
            meter: parts.meter,
            broker: parts.broker,
            clock,
            store: parts.store,
            limits: RequestLimits::new(settings.api.requests_per_second),
            turns: Turns::default(),
            lanes: parts.lanes,
            page: parts.page,
            desk: Arc::new(desk),
            batches: parts.batches,
            default_region: settings.jobs.default_region,
            keywords: Arc::clone(&settings.inbound.keywords),
            tasks: TaskTracker::new(),
            stop: parts.stop,
            telemetry: parts.telemetry,
        }
    }

    /// An account's policy; `None` where accounts that nobody has configured are refused.
    ///
    /// # Errors
    /// When the policies are not read yet: until then nothing may be decided by any.
    pub fn policy(&self, account: &AccountId) -> ApiResult<Option<Arc<AccountPolicy>>> {
        if !self.directory.is_loaded() {
            return Err(RecordsError::Unreachable.into());
        }
        Ok(self.directory.policy(account))
    }
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App").finish_non_exhaustive()
    }
}
