//! The task that looks after a store that is away, and makes up for what it has missed.

use std::sync::Arc;
use std::time::Duration;

use super::Shared;
use crate::meter::{CounterStore, StoreError};

/// So many ends of tries are made up for in one call.
const REPLAY_BATCH: usize = 256;
/// The longest wait for a probe: well above a connection attempt's time-out, and low enough for
/// being back within 3 s.
const PROBE_PATIENCE: Duration = Duration::from_secs(1);

/// Cares for the store, whenever it is called for, until it is well again.
pub(super) async fn run<S: CounterStore>(shared: Arc<Shared<S>>) {
    loop {
        shared.care.notified().await;
        while shared.state().needs_care() {
            care(&shared).await;
        }
    }
}

async fn care<S: CounterStore>(shared: &Shared<S>) {
    if shared.state().away().is_some() {
        tokio::time::sleep(shared.options.probe_every).await;
    }
    let result = recover(shared).await;
    let now = shared.now().instant;
    let rest = {
        let mut state = shared.state();
        match result {
            Ok(()) => state.store_works(now),
            Err(why) => state.store_fails(why, now),
        }
        state.needs_care() && state.away().is_none()
    };
    if rest {
        tokio::time::sleep(shared.options.probe_every).await;
    }
}

/// Probes, and then catches up, before anybody is told that the store is back: claims that it
/// still holds for tries that ended long ago would shed the next tries.
async fn recover<S: CounterStore>(shared: &Shared<S>) -> Result<(), StoreError> {
    tokio::time::timeout(PROBE_PATIENCE, shared.store.probe())
        .await
        .unwrap_or(Err(StoreError::TimedOut))?;
    match replay(shared).await {
        Err(StoreError::Failed) => replay_singly(shared).await,
        result => result,
    }
}

/// As [`replay`], but gives up on what a working store answers with an error: one account's
/// trouble must not keep all others away from the store.
async fn replay_singly<S: CounterStore>(shared: &Shared<S>) -> Result<(), StoreError> {
    loop {
        let single = shared.state().backlog.take(1);
        if single.is_empty() {
            return Ok(());
        }
        match shared.record(&single).await {
            Ok(()) | Err(StoreError::Failed) => {}
            Err(why) => {
                shared.state().backlog.put_back(single);
                return Err(why);
            }
        }
    }
}

/// Records everything that could not be recorded before, oldest first.
pub(super) async fn replay<S: CounterStore>(shared: &Shared<S>) -> Result<(), StoreError> {
    loop {
        let batch = shared.state().backlog.take(REPLAY_BATCH);
        if batch.is_empty() {
            return Ok(());
        }
        if let Err(why) = shared.record(&batch).await {
            shared.state().backlog.put_back(batch);
            return Err(why);
        }
    }
}
