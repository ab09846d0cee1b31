//! Connections, and questions that end in time.

use std::io;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions as _, Connection as _};
use tokio::time::{Instant, timeout, timeout_at};

use super::error::records_error;
use crate::dispatch::ports::RecordsError;
use crate::settings;

/// How the server's list of sessions shows this program.
const APPLICATION: &str = "lanekeeper";

/// Connections of what goes on beside the pipeline: four turns of the releaser, one for counting and
/// for the ledger's upkeep, and five for accounts' own queues: one that is being given, a spare one, and
/// three that are being given up.
pub const BESIDE: u32 = 10;

/// A connection that has been idle for longer may have died unnoticed: it is tried before use.
const TRIED_AFTER: Duration = Duration::from_secs(1);

/// Begins a transaction whose questions all see the same rows.
pub const ONE_MOMENT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// The database of a running process.
#[derive(Debug, Clone)]
pub struct Database {
    pool: PgPool,
    limit: Duration,
}

impl Database {
    /// The database of the settings. Nothing is connected before the first question.
    ///
    /// # Errors
    /// When the URL cannot be used: a certificate or key that it names, for instance.
    pub fn open(settings: &settings::Database) -> Result<Self, sqlx::Error> {
        Self::with_connections(settings, settings.connections)
    }

    /// The same for what goes on beside the pipeline, with [`BESIDE`] connections of its own: a
    /// releaser that waits for the broker must not keep jobs from being looked up.
    ///
    /// # Errors
    /// As [`Database::open`].
    pub fn beside(settings: &settings::Database) -> Result<Self, sqlx::Error> {
        Self::with_connections(settings, BESIDE)
    }

    fn with_connections(
        settings: &settings::Database,
        connections: u32,
    ) -> Result<Self, sqlx::Error> {
        let limit = settings.timeout;
        let options = session(settings)?.options([
            // The server too gives up what nobody waits for any more, and a transaction whose client
            // has stopped half-way.
            ("statement_timeout", limit.as_millis()),
            (
                "idle_in_transaction_session_timeout",
                limit.as_millis() * 10,
            ),
        ]);
        // Every question looks whole keys up. A plan that was made while a table was small would read
        // the table as a whole after it has grown, until the server looks at it again.
        // A table of one row is read as a whole all the same, at a cost that the server then takes for so
        // high that it would compile the question: 100 ms for what takes less than one.
        let options = options.options([("enable_seqscan", "off"), ("jit", "off")]);
        // Half of what waiting for a connection may take, so that the other half is left for a new one.
        let doubt = limit.min(settings.connect_timeout) / 2;
        let pool = PgPoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(settings.connect_timeout)
            .test_before_acquire(false)
            .before_acquire(move |connection, history| {
                Box::pin(async move {
                    let fresh = history.idle_for < TRIED_AFTER;
                    fresh_or_alive(fresh, connection, doubt).await
                })
            })
            // The pool itself tries each connection that comes back, but waits for ever.
            .after_release(move |connection, _| Box::pin(fresh_or_alive(false, connection, limit)))
            .connect_lazy_with(options);
        Ok(Self { pool, limit })
    }

    /// Asks a question over one connection. The wait for that connection counts towards the limit;
    /// a connection that does not answer in time is given up.
    ///
    /// # Errors
    /// [`RecordsError::Unreachable`] when no connection was to be had in time, and what
    /// [`records_error`] makes of other errors.
    pub async fn ask<T>(
        &self,
        question: impl AsyncFnOnce(&mut PgConnection) -> Result<T, sqlx::Error>,
    ) -> Result<T, RecordsError> {
        let deadline = Instant::now() + self.limit;
        let connection = timeout_at(deadline, self.pool.acquire()).await;
        let connection = connection.map_err(|_| RecordsError::Unreachable)?;
        let mut connection = connection.map_err(|error| records_error(&error))?;
        let answer = timeout_at(deadline, question(&mut connection)).await;
        let Ok(answer) = answer else {
            // Back in the pool it would keep others waiting.
            drop(connection.detach());
            return Err(RecordsError::TimedOut);
        };
        answer.map_err(|error| records_error(&error))
    }

    /// How long a question may take.
    #[must_use]
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// The pool, for work that is not bound to [`Database::limit`] as a whole. Single statements
    /// still are: the server ends those that take longer.
    #[must_use]
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }
}

/// One connection for a command, without limits for single statements.
///
/// # Errors
/// When there is none within the time-out for connecting; [`super::explain`] says why.
pub async fn connect(settings: &settings::Database) -> Result<PgConnection, sqlx::Error> {
    let session = session(settings)?;
    let connected = timeout(settings.connect_timeout, session.connect()).await;
    connected.map_err(|_| sqlx::Error::Io(io::ErrorKind::TimedOut.into()))?
}

fn session(settings: &settings::Database) -> Result<PgConnectOptions, sqlx::Error> {
    let url = settings.url.expose();
    let mut options = PgConnectOptions::from_url(url)?
        // Nothing here is a floating-point number, and PgBouncer refuses parameters that it does
        // not know.
        .extra_float_digits(None)
        // Statements may hold what logs must not.
        .disable_statement_logging();
    if options.get_application_name().is_none() {
        options = options.application_name(APPLICATION);
    }
    Ok(options)
}

async fn fresh_or_alive(
    fresh: bool,
    connection: &mut PgConnection,
    limit: Duration,
) -> Result<bool, sqlx::Error> {
    if !fresh {
        let alive = timeout(limit, connection.ping()).await;
        alive.map_err(|_| sqlx::Error::Io(io::ErrorKind::TimedOut.into()))??;
    }
    Ok(true)
}
