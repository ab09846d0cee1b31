//! What the tests stand on: private services, worker processes, a stub carrier.

pub mod api;
pub mod browser;
pub mod counters;
pub mod events;
pub mod events_of;
pub mod exchange;
pub mod flow;
pub mod hot_queues;
pub mod jobs;
pub mod own_queues;
pub mod postgres;
pub mod programs;
pub mod prometheus;
pub mod queues;
pub mod rabbit;
pub mod raw;
pub mod records;
pub mod redis;
pub mod road;
pub mod scene;
pub mod stub;
pub mod watch;
pub mod worker;

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::time::{Instant, sleep};

/// The shared broker.
pub fn amqp_url() -> String {
    std::env::var("LANEKEEPER_TEST_AMQP_URL")
        .unwrap_or_else(|_| "amqp://guest:guest@127.0.0.1:5672".to_owned())
}

/// The shared Redis.
pub fn redis_url() -> String {
    std::env::var("LANEKEEPER_TEST_REDIS_URL")
        .unwrap_or_else(|_| "redis://127.0.0.1:6379".to_owned())
}

/// A prefix for queues and keys that no other test, of this run or another, uses.
pub fn unique_prefix(name: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Relaxed);
    format!("t-{name}-{}-{count}", std::process::id())
}

/// Who may load the machine at the moment.
static LOAD: RwLock<()> = RwLock::const_new(());

/// Held by every test that measures times or loads the machine: one of them at a time.
pub async fn heavy() -> RwLockWriteGuard<'static, ()> {
    LOAD.write().await
}

/// Held during what takes much of the processor for a moment, so that it disturbs no measurement.
pub async fn busy() -> RwLockReadGuard<'static, ()> {
    LOAD.read().await
}

/// Polls until `check` holds.
///
/// # Panics
/// When it does not within `limit`.
pub async fn eventually(what: &str, limit: Duration, mut check: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !check().await {
        assert!(Instant::now() < deadline, "not within {limit:?}: {what}");
        sleep(Duration::from_millis(20)).await;
    }
}
