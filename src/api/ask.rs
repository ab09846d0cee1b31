//! Questions to the tables.

use sqlx::{Connection as _, PgConnection};

use super::error::{ApiError, ApiResult};
use crate::accounts::tables::TableError;
use crate::postgres::{Database, ONE_MOMENT};

/// Asks the tables, within the time that a question may take.
///
/// # Errors
/// When the database gives no answer.
pub(super) async fn ask<T>(
    database: &Database,
    question: impl AsyncFnOnce(&mut PgConnection) -> Result<T, TableError>,
) -> ApiResult<T> {
    let asking = async |connection: &mut PgConnection| split(question(connection).await);
    database.ask(asking).await?.map_err(|error| told(&error))
}

/// The same, several questions about one moment.
///
/// # Errors
/// When the database gives no answer.
pub(super) async fn glance<T>(
    database: &Database,
    questions: impl AsyncFnOnce(&mut PgConnection) -> Result<T, TableError>,
) -> ApiResult<T> {
    let asking = async |connection: &mut PgConnection| {
        let mut moment = connection.begin_with(ONE_MOMENT).await?;
        let answer = split(questions(&mut moment).await)?;
        moment.commit().await?;
        Ok(answer)
    };
    database.ask(asking).await?.map_err(|error| told(&error))
}

/// The same in one transaction: what fails has changed nothing.
///
/// # Errors
/// When the database gives no answer.
pub(super) async fn change<T>(
    database: &Database,
    work: impl AsyncFnOnce(&mut PgConnection) -> Result<T, TableError>,
) -> ApiResult<T> {
    let changing = async |connection: &mut PgConnection| {
        let mut transaction = connection.begin().await?;
        let done = split(work(&mut transaction).await)?;
        if done.is_ok() {
            transaction.commit().await?;
        }
        Ok(done)
    };
    database.ask(changing).await?.map_err(|error| told(&error))
}

/// What the database says apart from what is wrong with the question.
fn split<T>(answer: Result<T, TableError>) -> Result<Result<T, TableError>, sqlx::Error> {
    match answer {
        Err(TableError::Database(error)) => Err(error),
        answer => Ok(answer),
    }
}

fn told(error: &TableError) -> ApiError {
    tracing::error!(%error, "the tables do not hold what they should");
    ApiError::unavailable("the account's row cannot be used just now: try again")
}
