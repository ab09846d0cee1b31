//! The database of a worker, and the tasks that look after it.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::accounts::{self, Directory};
use crate::clock::SystemClock;
use crate::dispatch::ports::Broker;
use crate::domain::{AccountId, Lane};
use crate::embedded::NoRecords;
use crate::ledger::{Maintenance, RecipientForm};
use crate::postgres::{self, Database, MigrationsError};
use crate::records::{AnyRecords, PgRecords};
use crate::settings::{self, Settings};
use crate::telemetry::Telemetry;
use crate::waiting::Releaser;

/// How soon again after the database was away.
const MIGRATE_AGAIN: Duration = Duration::from_secs(2);

/// What a worker knows of accounts and writes down, with or without a database.
pub(super) struct Memory {
    pub records: Arc<AnyRecords>,
    pub directory: Arc<Directory>,
    /// The database of what runs beside the pipeline.
    beside: Option<Database>,
}

/// Connections for what must not keep jobs from being looked up.
///
/// # Errors
/// As [`open`].
pub(super) fn beside(section: &settings::Database) -> anyhow::Result<Database> {
    Database::beside(section).map_err(|error| unusable(&error))
}

fn unusable(error: &sqlx::Error) -> anyhow::Error {
    let why = postgres::explain(error);
    anyhow::anyhow!("the database cannot be used: {why}")
}

/// Opens the database of the settings, if they name one. Nothing is connected yet: a database that
/// is down is waited for.
///
/// # Errors
/// When the URL names a certificate or key that cannot be used.
pub(super) fn open(settings: &Settings) -> anyhow::Result<Memory> {
    let Some(section) = &settings.database else {
        return Ok(Memory {
            records: Arc::new(AnyRecords::None(NoRecords)),
            directory: Arc::new(Directory::from_settings(settings)),
            beside: None,
        });
    };
    let database = Database::open(section).map_err(|error| unusable(&error))?;
    let beside = beside(section)?;
    let directory = Arc::new(Directory::of_database(settings));
    let recipients = RecipientForm::of(&settings.ledger);
    let records = PgRecords::new(database, Arc::clone(&directory), recipients);
    Ok(Memory {
        records: Arc::new(AnyRecords::Postgres(records)),
        directory,
        beside: Some(beside),
    })
}

/// Brings the schema up to date where the settings want it, and waits for a database that is away.
/// Gives the error that only a person can mend; otherwise it never ends.
pub(super) async fn migration_failure(settings: &Settings) -> MigrationsError {
    let Some(section) = &settings.database else {
        return std::future::pending().await;
    };
    loop {
        match postgres::migrate_at_start(section).await {
            Ok(()) => return std::future::pending().await,
            Err(error @ MigrationsError::Database(_)) => {
                tracing::warn!(%error, "waiting for the database");
                sleep(MIGRATE_AGAIN).await;
            }
            Err(error) => return error,
        }
    }
}

impl Memory {
    /// The database of what runs beside the pipeline, if there is one.
    pub(super) fn beside(&self) -> Option<&Database> {
        self.beside.as_ref()
    }

    /// Lets the directory follow its tables until `stop`.
    pub(super) fn follow(&self, stop: &CancellationToken) -> JoinSet<()> {
        let mut keepers = JoinSet::new();
        if let Some(database) = &self.beside {
            let (directory, pool) = (Arc::clone(&self.directory), database.pool().clone());
            let stopped = stop.clone();
            keepers.spawn(async move { accounts::keep(directory, &pool, stopped).await });
        }
        keepers
    }

    /// Starts what runs beside the pipeline, until `stop`: the directory follows its tables, what
    /// is due is released, and the ledger gets its partitions.
    pub(super) fn keep<B: Broker>(
        &self,
        settings: &Settings,
        broker: Arc<B>,
        telemetry: &Telemetry,
        stop: &CancellationToken,
    ) -> JoinSet<()> {
        let mut keepers = self.follow(stop);
        let Some(database) = &self.beside else {
            return keepers;
        };
        let directory = Arc::clone(&self.directory);
        let ceiling = move |account: &AccountId, lane: Lane| {
            // The jobs of an account that is refused come back to be refused.
            let policy = directory.policy(account);
            policy.map_or(1, |policy| policy.ceilings.of_lane(lane))
        };
        let releaser = Releaser::new(
            database.pool().clone(),
            broker,
            Arc::new(ceiling),
            settings.amqp.confirm_timeout,
            telemetry.clone(),
            fastrand::Rng::new(),
        );
        keepers.spawn(releaser.run(stop.clone()));
        let maintenance = Maintenance {
            pool: database.pool().clone(),
            clock: Arc::new(SystemClock),
            retention: settings.ledger.retention,
            telemetry: telemetry.clone(),
        };
        keepers.spawn(maintenance.run(stop.clone()));
        keepers
    }
}
