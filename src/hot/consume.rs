//! Which of the queues a worker consumes from, and how much of each it takes at a time.

use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::list::{HotList, Listed};
use crate::domain::{AccountId, Lane};
use crate::intake::{HotBroker, HotConsumption};
use crate::telemetry::Telemetry;

/// Tells the ceiling of an account's lane, in jobs per second; `None` when nothing of the account is
/// sent, and its jobs end as refused.
pub type CeilingOf = Arc<dyn Fn(&AccountId, Lane) -> Option<u32> + Send + Sync>;

/// How soon a ceiling that has changed is noticed.
const LOOK: Duration = Duration::from_secs(1);

/// The least that is taken at a time, so that a low ceiling does not make every job wait for the
/// broker.
const LEAST: u16 = 10;

/// Has the broker's side consume from the queues of the list, as it changes and as ceilings change,
/// until `stop`. `most` is the most that is taken of one queue at a time.
pub async fn consume(
    list: Arc<HotList>,
    broker: HotBroker,
    ceiling: CeilingOf,
    most: NonZeroU16,
    telemetry: Telemetry,
    stop: CancellationToken,
) {
    let mut changes = list.changes();
    let consuming = async {
        loop {
            changes.mark_unchanged();
            let now = list.now();
            let wanted = now.iter().filter_map(|one| wanted(one, &ceiling, most));
            broker.consume(wanted.collect());
            for lane in Lane::ALL {
                let its = now.iter().filter(|one| one.queue.lane == lane);
                telemetry.hot_queues(lane, its.count());
            }
            // The list outlives this.
            let _ = timeout(LOOK, changes.changed()).await;
        }
    };
    stop.run_until_cancelled(consuming).await;
}

/// As much of a queue as its ceiling lets through in a second: then the whole of a window can go at
/// its opening, and the workers together hold no more than goes in a few seconds. Nothing of a queue
/// of which nothing can go.
fn wanted(listed: &Listed, ceiling: &CeilingOf, most: NonZeroU16) -> Option<HotConsumption> {
    if !listed.state.is_consumed() || listed.paused {
        return None;
    }
    let queue = &listed.queue;
    let prefetch = match ceiling(&queue.account, queue.lane) {
        Some(0) => return None,
        Some(ceiling) => u16::try_from(ceiling).unwrap_or(u16::MAX).max(LEAST),
        None => u16::MAX,
    };
    Some(HotConsumption {
        queue: queue.clone(),
        prefetch: NonZeroU16::new(prefetch)?.min(most),
    })
}
