//! A ring as an API server keeps it, and keys as an operator makes them.

use std::sync::Arc;
use std::time::Duration;

use lanekeeper::accounts::keys::{KeyError, KeyGrant, KeyId, LiveKeyRing, keep};
use serde_json::Value;
use sqlx::PgPool;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::super::desk::Desk;
use crate::support::eventually;

/// A change is seen within this.
pub const SOON: Duration = Duration::from_secs(1);

/// What takes a server's start or end may take this long.
pub const LATER: Duration = Duration::from_secs(20);

/// The keys in one process's memory, kept until the value is dropped.
pub struct Server {
    pub keys: Arc<LiveKeyRing>,
    stop: CancellationToken,
    keeping: JoinHandle<()>,
}

impl Server {
    pub fn start(pool: &PgPool) -> Self {
        let keys = Arc::new(LiveKeyRing::of_database());
        let (stop, pool) = (CancellationToken::new(), pool.clone());
        let (kept, until) = (Arc::clone(&keys), stop.clone());
        Self {
            keeping: tokio::spawn(async move { keep(kept, &pool, until).await }),
            keys,
            stop,
        }
    }

    pub async fn loaded(pool: &PgPool) -> Self {
        let server = Self::start(pool);
        let loading = tokio::time::timeout(LATER, server.keys.loaded());
        loading.await.expect("the keys are read in time");
        server
    }

    pub fn check(&self, presented: &str) -> Result<KeyGrant, KeyError> {
        let ring = self.keys.ring().expect("the keys have been read");
        ring.check(presented.as_bytes()).cloned()
    }

    /// That the key is accepted, or why not, within a time.
    pub async fn sees(&self, key: &Made, expected: Result<(), KeyError>, within: Duration) {
        let what = format!("{}: {expected:?}", key.id);
        let check = async || self.check(&key.key).map(|_| ()) == expected;
        eventually(&what, within, check).await;
    }

    pub async fn end(self) {
        self.stop.cancel();
        let ending = tokio::time::timeout(SOON, self.keeping);
        ending.await.expect("it ends in time").unwrap();
    }
}

/// A key that the command has made.
pub struct Made {
    pub key: String,
    pub id: KeyId,
}

impl Made {
    /// By `key create`, with these further words.
    pub async fn by(desk: &Desk, words: &str) -> Self {
        let made = desk.ok(&format!("key create --json {words}")).await;
        Self::of(&made.json()[0])
    }

    pub fn of(line: &Value) -> Self {
        let text = |name: &str| line[name].as_str().unwrap().to_owned();
        Self {
            key: text("key"),
            id: KeyId::parse(text("key_id").as_bytes()).unwrap(),
        }
    }

    pub fn secret(&self) -> &str {
        self.key.rsplit('_').next().unwrap()
    }

    /// Its id with the secret of another.
    pub fn with_secret_of(&self, other: &Self) -> String {
        format!("lk_{}_{}", self.id, other.secret())
    }
}
