//! The keys as they are now.

use std::sync::Arc;
use std::time::Duration;

use sqlx::{PgConnection, PgPool};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::reading;
use super::ring::KeyRing;
use crate::accounts::reading as directory;
use crate::postgres::{self, Copied};

/// The keys as they are now: the last ring that was read. [`keep`] puts another in its place whenever
/// a key is made or revoked.
#[derive(Debug)]
pub struct LiveKeyRing(watch::Sender<Option<Held>>);

#[derive(Debug, Clone)]
struct Held {
    ring: Arc<KeyRing>,
    /// That of the tables that it was read from.
    version: Option<i64>,
}

impl LiveKeyRing {
    /// Keys that are yet to be read from the database.
    #[must_use]
    pub fn of_database() -> Self {
        Self(watch::Sender::new(None))
    }

    /// Keys that nobody reads from anywhere, for a server without a database.
    #[must_use]
    pub fn fixed(ring: KeyRing) -> Self {
        Self(watch::Sender::new(Some(Held {
            ring: Arc::new(ring),
            version: None,
        })))
    }

    /// The ring that holds now, for the length of one request. `None` until it was read once: no key
    /// can be checked yet, which is no fault of whoever presents one.
    #[must_use]
    pub fn ring(&self) -> Option<Arc<KeyRing>> {
        self.0.borrow().as_ref().map(|held| Arc::clone(&held.ring))
    }

    /// Waits until keys can be checked.
    pub async fn loaded(&self) {
        let mut held = self.0.subscribe();
        // The sender lives as long as `self`.
        let _ = held.wait_for(Option::is_some).await;
    }
}

/// Reads the keys from the database that `pool` leads to, and again whenever one is made or revoked
/// there, on a connection of its own, until `stop`. While the database is away it tries again for
/// ever, and what was read last holds: a key that is revoked just then is accepted until the database
/// is back.
///
/// It has a connection apart from that of the directory: a revoked key must not be accepted for as
/// long as the reading of a large directory takes.
pub async fn keep(keys: Arc<LiveKeyRing>, pool: &PgPool, stop: CancellationToken) {
    postgres::keep(keys, pool, stop).await;
}

impl Copied for LiveKeyRing {
    type Read = (KeyRing, i64);

    const CHANNEL: &'static str = directory::CHANNEL;
    const WHAT: &'static str = "the API keys";
    const BEFORE: &'static str = "no request is accepted";

    fn version(&self) -> Option<i64> {
        self.0.borrow().as_ref()?.version
    }

    async fn version_now(connection: &mut PgConnection) -> sqlx::Result<i64> {
        directory::version(connection).await
    }

    async fn read(connection: &mut PgConnection) -> sqlx::Result<Self::Read> {
        reading::everything(connection).await
    }

    async fn take_in(&self, (ring, version): Self::Read, took: Duration) {
        tracing::debug!(
            keys = ring.len(),
            version,
            ?took,
            "the API keys have been read"
        );
        self.0.send_replace(Some(Held {
            ring: Arc::new(ring),
            version: Some(version),
        }));
    }
}
