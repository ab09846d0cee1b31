//! The directory as a copy of its tables.

use std::sync::Arc;
use std::time::Duration;

use sqlx::{PgConnection, PgPool};
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use super::directory::Directory;
use super::reading;
use super::snapshot::Snapshot;
use super::stored::Stored;
use crate::postgres::{self, Copied};

/// So many accounts with values that cannot be read are named in the log.
const MOST_NAMED: usize = 20;

/// Reads the directory from the database that `pool` leads to, and again whenever it changes there,
/// on a connection of its own, until `stop`. While the database is away it tries again for ever, and
/// what was read last holds.
pub async fn keep(directory: Arc<Directory>, pool: &PgPool, stop: CancellationToken) {
    postgres::keep(directory, pool, stop).await;
}

impl Copied for Directory {
    type Read = (Stored, i64);

    const CHANNEL: &'static str = reading::CHANNEL;
    const WHAT: &'static str = "the accounts";
    const BEFORE: &'static str = "nothing is sent";

    fn version(&self) -> Option<i64> {
        Self::version(self)
    }

    async fn version_now(connection: &mut PgConnection) -> sqlx::Result<i64> {
        reading::version(connection).await
    }

    async fn read(connection: &mut PgConnection) -> sqlx::Result<Self::Read> {
        reading::everything(connection).await
    }

    /// Working out many policies takes a moment, and so does freeing them: no job waits for either.
    async fn take_in(&self, (stored, version): Self::Read, took: Duration) {
        let base = Arc::clone(self.base());
        let made = spawn_blocking(move || Snapshot::of_tables(&base, stored, version)).await;
        let snapshot = made.expect("no stored value makes it panic");
        announce(&snapshot, &self.current(), took);
        let before = self.replace(snapshot);
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
