//! Keeps a directory as the database has it.

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use sqlx::{Acquire as _, PgConnection, PgPool};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, error::Elapsed, timeout};
use tokio_util::sync::CancellationToken;

use super::directory::Directory;
use super::reading;
use super::snapshot::Snapshot;
use super::stored::Stored;
use crate::backoff::Retry;
use crate::postgres::explain;

/// What the database notifies of each change.
const CHANNEL: &str = "lanekeeper_directory";
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
/// So many accounts with values that cannot be read are named in the log.
const MOST_NAMED: usize = 20;

/// Reads the directory from the database that `pool` leads to, and again whenever it changes there,
/// on a connection of its own, until `stop`. While the database is away it tries again for ever, and
/// what was read last holds.
pub async fn keep(directory: Arc<Directory>, pool: &PgPool, stop: CancellationToken) {
    let options = pool.connect_options();
    let keeper = Keeper { directory };
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

struct Keeper {
    directory: Arc<Directory>,
}

impl Keeper {
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
                tracing::info!("the accounts can be read again");
            }
            retry.reset();
            let lost = follower.follow().await;
            self.say_away(&lost, &mut is_away);
        }
    }

    /// Connects, and reads what has changed meanwhile.
    async fn connect(&self, options: &PgConnectOptions) -> Result<Follower<'_>, Lost> {
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(ANSWER)
            .connect_lazy_with(options.clone());
        let mut listener = timeout(ANSWER, PgListener::connect_with(&pool)).await??;
        listener.eager_reconnect(false);
        timeout(ANSWER, listener.listen(CHANNEL)).await??;
        let mut follower = Follower {
            directory: &self.directory,
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
        if self.directory.is_loaded() {
            tracing::warn!(error = %lost, "the accounts cannot be read now; what was read last holds");
        } else {
            tracing::warn!(error = %lost, "the accounts cannot be read yet; nothing is sent before they are");
        }
    }
}

/// A directory on a connection that hears of changes.
struct Follower<'a> {
    directory: &'a Directory,
    listener: PgListener,
}

impl Follower<'_> {
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
        let version = timeout(ANSWER, reading::version(connection)).await??;
        if self.directory.version() == Some(version) {
            return Ok(());
        }
        let started = Instant::now();
        let (stored, version) = timeout(WHOLE, reading::everything(connection)).await??;
        self.take_in(stored, version, started).await;
        tokio::time::sleep(started.elapsed().min(LONGEST_REST)).await;
        Ok(())
    }

    /// Working out many policies takes a moment, and so does freeing them: no job waits for either.
    async fn take_in(&self, stored: Stored, version: i64, started: Instant) {
        let base = Arc::clone(self.directory.base());
        let made = spawn_blocking(move || Snapshot::of_tables(&base, stored, version)).await;
        let snapshot = made.expect("no stored value makes it panic");
        announce(&snapshot, &self.directory.current(), started.elapsed());
        let before = self.directory.replace(snapshot);
        drop(spawn_blocking(move || drop(before)));
    }
}

/// Each change of any account has all of them read: what was told of the others is not told again.
fn announce(snapshot: &Snapshot, before: &Snapshot, took: Duration) {
    tracing::debug!(
        accounts = snapshot.len(),
        version = snapshot.version(),
        ?took,
        "the accounts have been read"
    );
    let mut faults = snapshot.new_faults(before);
    for (account, why) in faults.by_ref().take(MOST_NAMED) {
        tracing::error!(%account, why, "an account's quiet hours cannot be read; nothing of it is sent until `lanekeeper account set` mends them");
    }
    let more = faults.count();
    if more > 0 {
        tracing::error!(
            more,
            "as many further accounts have quiet hours that cannot be read"
        );
    }
}
