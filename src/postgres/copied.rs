//! Keeps a copy of some tables in memory as the database has them.

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use sqlx::{Acquire as _, PgConnection, PgPool};
use tokio::time::{Instant, error::Elapsed, timeout};
use tokio_util::sync::CancellationToken;

use super::error::explain;
use crate::backoff::Retry;

/// How often the version is asked for although nothing was notified: a notification may be lost.
const REFRESH: Duration = Duration::from_millis(500);
/// How long connecting may take, and a question about the version.
const ANSWER: Duration = Duration::from_secs(2);
/// How long reading everything may take.
const WHOLE: Duration = Duration::from_secs(30);
/// The longest pause before the next try to connect.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// The longest rest between two readings: with changes that never end, a large directory is read
/// half of the time, not all of it.
const LONGEST_REST: Duration = Duration::from_millis(400);

/// A copy of some tables whose changes are counted, and notified.
pub(crate) trait Copied: Send + Sync {
    /// What was read of the tables at one moment.
    type Read: Send;

    /// What the database notifies of each change.
    const CHANNEL: &'static str;
    /// What it is a copy of, in the plural.
    const WHAT: &'static str;
    /// What is not done before it was read once.
    const BEFORE: &'static str;

    /// The version of the tables that it was read from last.
    fn version(&self) -> Option<i64>;

    /// The version of the tables now: it grows with each change.
    fn version_now(connection: &mut PgConnection)
    -> impl Future<Output = sqlx::Result<i64>> + Send;

    /// Reads all that it consists of.
    fn read(connection: &mut PgConnection)
    -> impl Future<Output = sqlx::Result<Self::Read>> + Send;

    /// Puts what was read, in so much time, in the place of what it was.
    fn take_in(&self, read: Self::Read, took: Duration) -> impl Future<Output = ()> + Send;
}

/// Reads the copy from the database that `pool` leads to, and again whenever that changes, on a
/// connection of its own, until `stop`. While the database is away it tries again for ever, and what
/// was read last holds.
pub(crate) async fn keep<C: Copied>(copy: Arc<C>, pool: &PgPool, stop: CancellationToken) {
    let options = pool.connect_options();
    let keeper = Keeper { copy };
    stop.run_until_cancelled_owned(keeper.run(&options)).await;
}

/// Why a connection is given up.
#[derive(Debug, thiserror::Error)]
enum Lost {
    #[error("the database did not answer in time")]
    TimedOut(#[from] Elapsed),
    #[error("{}", explain(.0))]
    Database(#[from] sqlx::Error),
    #[error("the connection was closed")]
    Closed,
}

struct Keeper<C> {
    copy: Arc<C>,
}

impl<C: Copied> Keeper<C> {
    async fn run(&self, options: &PgConnectOptions) {
        let mut retry = Retry::capped(LONGEST_PAUSE);
        let mut is_away = false;
        loop {
            let mut follower = match self.connect(options).await {
                Ok(follower) => follower,
                Err(lost) => {
                    self.say_away(&lost, &mut is_away);
                    tokio::time::sleep(retry.next_pause()).await;
                    continue;
                }
            };
            if std::mem::take(&mut is_away) {
                tracing::info!("{} can be read again", C::WHAT);
            }
            retry.reset();
            let lost = follower.follow().await;
            self.say_away(&lost, &mut is_away);
        }
    }

    /// Connects, and reads what has changed meanwhile.
    async fn connect(&self, options: &PgConnectOptions) -> Result<Follower<'_, C>, Lost> {
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(ANSWER)
            .connect_lazy_with(options.clone());
        let mut listener = timeout(ANSWER, PgListener::connect_with(&pool)).await??;
        listener.eager_reconnect(false);
        timeout(ANSWER, listener.listen(C::CHANNEL)).await??;
        let mut follower = Follower {
            copy: &*self.copy,
            listener,
        };
        follower.refresh().await?;
        Ok(follower)
    }

    /// Once for each time that it goes away.
    fn say_away(&self, lost: &Lost, is_away: &mut bool) {
        if std::mem::replace(is_away, true) {
            return;
        }
        let what = C::WHAT;
        if self.copy.version().is_some() {
            tracing::warn!(error = %lost, "{what} cannot be read now; what was read last holds");
        } else {
            let before = C::BEFORE;
            tracing::warn!(error = %lost, "{what} cannot be read yet; {before} before they are");
        }
    }
}

/// A copy on a connection that hears of changes.
struct Follower<'a, C> {
    copy: &'a C,
    listener: PgListener,
}

impl<C: Copied> Follower<'_, C> {
    /// Takes in every change until the connection is lost.
    async fn follow(&mut self) -> Lost {
        loop {
            let next = async {
                self.wait().await?;
                self.refresh().await
            };
            if let Err(lost) = next.await {
                return lost;
            }
        }
    }

    /// Waits for a notification, or for the time to ask without one.
    async fn wait(&mut self) -> Result<(), Lost> {
        let Ok(notified) = timeout(REFRESH, self.listener.try_recv()).await else {
            return Ok(());
        };
        notified?.ok_or(Lost::Closed)?;
        // One reading takes in all that was notified before it.
        while self.listener.next_buffered().is_some() {}
        Ok(())
    }

    /// Reads everything, if it is not what was read before.
    async fn refresh(&mut self) -> Result<(), Lost> {
        let connection: &mut PgConnection = self.listener.acquire().await?;
        let version = timeout(ANSWER, C::version_now(connection)).await??;
        if self.copy.version() == Some(version) {
            return Ok(());
        }
        let started = Instant::now();
        let read = timeout(WHOLE, C::read(connection)).await??;
        self.copy.take_in(read, started.elapsed()).await;
        tokio::time::sleep(started.elapsed().min(LONGEST_REST)).await;
        Ok(())
    }
}
