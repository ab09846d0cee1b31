//! The schema, brought up to date: by whoever asks first, while all others wait.

use std::time::Duration;

use sqlx::migrate::{Migrate, MigrateError, Migration};
use sqlx::{Connection as _, Executor as _, PgConnection};
use thiserror::Error;
use tokio::time::timeout;

use super::error::{Condition, condition, explain};
use super::schema::{MIGRATIONS, Schema, Step};
use super::version::{UTF8, encoding};
use crate::settings;

/// How long the others are waited for in silence.
const SILENT_WAIT: Duration = Duration::from_secs(5);

/// How long a statement of a migration may wait for a table that others use. All later users of that
/// table wait behind it.
const LOCK_LIMIT: &str = "SET LOCAL lock_timeout = '10s'";

/// Each statement sees what others have committed before it, whatever the server's default is.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

/// The name of the lock by which processes take turns; any number that nobody else uses.
const TURN: i64 = 0x6c61_6e65_6b65_6570;

/// Why the schema is not up to date.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MigrationsError {
    /// A migration has another content than when it was applied. Nothing was done.
    #[error(
        "migration {version} ({description}) was applied to this database with another content than \
         it has in this program; nothing was done. Migrations that have been applied must not \
         change: use the release that applied it, or a newer one; in a development tree, put the \
         file back and add a new migration, or start with an empty database"
    )]
    Changed {
        /// Its number.
        version: i64,
        /// Its name.
        description: String,
    },
    /// The database cannot keep every text. Nothing was done.
    #[error(
        "the database keeps texts in {0}, which not every text has; nothing was done. Create one \
         with: CREATE DATABASE … TEMPLATE template0 ENCODING 'UTF8'"
    )]
    Encoding(String),
    /// The user of the URL may not change the schema.
    #[error(
        "the user of database.url may not change the schema ({0}): run `lanekeeper migrate` with a URL \
         of the user who owns the tables, or grant this one CREATE on the database's schema"
    )]
    Forbidden(String),
    /// A migration failed.
    #[error("migration {version} ({description}) failed, and nothing was changed: {why}")]
    Failed {
        /// Its number.
        version: i64,
        /// Its name.
        description: String,
        /// What the server said.
        why: String,
    },
    /// The database did not answer as it should.
    #[error("the database cannot be used: {0}")]
    Database(String),
}

/// Brings the schema up to date, and gives what it did itself: nothing, when nothing was pending or
/// another process was quicker.
///
/// Any number of processes may call this at the same time. One that has nothing to do needs no right
/// to change anything. Migrations that this program does not know are left alone: after a roll-back
/// it works with a newer schema.
///
/// # Errors
/// [`MigrationsError`]; the database is then as it was.
pub async fn migrate(connection: &mut PgConnection) -> Result<Vec<Step>, MigrationsError> {
    let encoding = encoding(connection).await?;
    if encoding != UTF8 {
        return Err(MigrationsError::Encoding(encoding));
    }
    if pending(connection).await?.is_empty() {
        return Ok(Vec::new());
    }
    let mut transaction = connection.begin_with(BEGIN).await?;
    lock(&mut transaction).await?;
    // What was pending before the lock was had may be done by now.
    let pending = pending(&mut transaction).await?;
    apply(&mut transaction, &pending).await?;
    transaction.commit().await?;
    Ok(pending)
}

/// As [`migrate`], where the settings want it done at start-up.
///
/// # Errors
/// As [`migrate`], and when nothing can be connected to.
pub async fn migrate_at_start(settings: &settings::Database) -> Result<(), MigrationsError> {
    if !settings.migrate {
        return Ok(());
    }
    let mut connection = super::connect(settings).await?;
    for step in migrate(&mut connection).await? {
        tracing::info!(version = step.version, "applied a migration");
    }
    // What is done is committed.
    let _ = connection.close().await;
    Ok(())
}

async fn pending(connection: &mut PgConnection) -> Result<Vec<Step>, MigrationsError> {
    let schema = Schema::look(connection).await?;
    schema.refuse_changed()?;
    Ok(schema.pending)
}

impl Schema {
    /// Whether every applied migration is the one that this program knows.
    ///
    /// # Errors
    /// [`MigrationsError::Changed`] with the first that is not.
    pub fn refuse_changed(&self) -> Result<(), MigrationsError> {
        let Some(step) = self.changed.first() else {
            return Ok(());
        };
        Err(MigrationsError::Changed {
            version: step.version,
            description: step.description.clone(),
        })
    }
}

/// Waits for the turn, which ends with the transaction: a lock of the session, as sqlx would take it,
/// stays with whichever session PgBouncer happened to give, and is never released.
async fn lock(transaction: &mut PgConnection) -> Result<(), MigrationsError> {
    let statement = sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(TURN);
    {
        let locking = statement.execute(&mut *transaction);
        tokio::pin!(locking);
        if let Ok(locked) = timeout(SILENT_WAIT, &mut locking).await {
            locked?;
        } else {
            tracing::warn!("another process is bringing the schema up to date: waiting for it");
            locking.await?;
        }
    }
    transaction.execute(LOCK_LIMIT).await?;
    Ok(())
}

async fn apply(transaction: &mut PgConnection, pending: &[Step]) -> Result<(), MigrationsError> {
    if pending.is_empty() {
        return Ok(());
    }
    let prepared = transaction.ensure_migrations_table().await;
    prepared.map_err(|error| while_preparing(&error))?;
    let is_pending = |one: &&Migration| pending.iter().any(|step| step.version == one.version);
    for migration in MIGRATIONS.iter().filter(is_pending) {
        let applied = transaction.apply(migration).await;
        applied.map_err(|error| while_applying(migration, &error))?;
    }
    Ok(())
}

impl From<sqlx::Error> for MigrationsError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(explain(&error))
    }
}

fn while_preparing(error: &MigrateError) -> MigrationsError {
    let error = source(error);
    forbidden(error).unwrap_or_else(|| MigrationsError::Database(said(error)))
}

fn while_applying(migration: &Migration, error: &MigrateError) -> MigrationsError {
    let error = source(error);
    forbidden(error).unwrap_or_else(|| MigrationsError::Failed {
        version: migration.version,
        description: migration.description.to_string(),
        why: said(error),
    })
}

fn source(error: &MigrateError) -> Option<&sqlx::Error> {
    match error {
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => Some(error),
        _ => None,
    }
}

fn forbidden(error: Option<&sqlx::Error>) -> Option<MigrationsError> {
    let answer = error?.as_database_error()?;
    matches!(condition(answer), Condition::Forbidden)
        .then(|| MigrationsError::Forbidden(answer.message().to_owned()))
}

/// The server's own words: what a migration does to the schema is no secret.
fn said(error: Option<&sqlx::Error>) -> String {
    let answer = error.and_then(sqlx::Error::as_database_error);
    match (answer, error) {
        (Some(answer), _) => answer.message().to_owned(),
        (None, Some(error)) => explain(error),
        (None, None) => "sqlx refuses".to_owned(),
    }
}
