//! The schema, brought up to date.

use sqlx::PgConnection;
use sqlx::migrate::{Migrate as _, MigrateError, Migrator};

/// Every migration that this program knows.
pub static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");

/// Why the schema is not up to date.
pub type MigrationsError = MigrateError;

/// Brings the schema up to date.
///
/// # Errors
/// When it cannot.
pub async fn migrate(connection: &mut PgConnection) -> Result<(), MigrationsError> {
    connection.lock().await?;
    MIGRATIONS.run_direct(connection).await?;
    connection.unlock().await
}
