//! Which of the queues a worker consumes from, and how much of each it takes at a time.

use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::list::{HotList, Listed};
use super::sharers::{self, Sharers};
use crate::domain::{AccountId, Lane};
use crate::intake::{HotBroker, HotConsumption};
use crate::telemetry::Telemetry;

/// Tells the ceiling of an account's lane, in jobs per second; `None` when nothing of the account is
/// sent, and its jobs end as refused.
pub type CeilingOf = Arc<dyn Fn(&AccountId, Lane) -> Option<u32> + Send + Sync>;

/// How soon a ceiling that has changed is noticed.
const LOOK: Duration = Duration::from_secs(1);

/// The least that is taken at a time, so that a low ceiling does not make every job wait for the
/// broker; but no more than is sent within [`LONGEST`].
const LEAST: u32 = 10;

/// For how many seconds' sending all workers together hold jobs at most: half of the time after which a
/// job that is held is shed.
const LONGEST: u32 = 5;

/// Has the broker's side consume from the queues of the list, as it changes, as ceilings change and as
/// workers come and go, until `stop`. `most` is the most that is taken of one queue at a time.
pub async fn consume(
    list: Arc<HotList>,
    broker: HotBroker,
    ceiling: CeilingOf,
    most: NonZeroU16,
    telemetry: Telemetry,
    stop: CancellationToken,
) {
    let mut changes = list.changes();
    let (tell, mut sharers) = watch::channel(Sharers::default());
    let following = sharers::follow(&broker, tell);
    let consuming = async {
        loop {
            changes.mark_unchanged();
            let now = list.now();
            let workers = sharers.borrow_and_update().count();
            let wanted = now
                .iter()
                .filter_map(|one| wanted(one, &ceiling, workers, most));
            broker.consume(wanted.collect());
            for lane in Lane::ALL {
                let its = now.iter().filter(|one| one.queue.lane == lane);
                telemetry.hot_queues(lane, its.count());
            }
            // Neither ends before this does.
            let _ = timeout(LOOK, async {
                tokio::select! {
                    _ = changes.changed() => {}
                    _ = sharers.changed() => {}
                }
            })
            .await;
        }
    };
    let both = async { tokio::join!(following, consuming) };
    stop.run_until_cancelled(both).await;
}

/// What this worker takes of a queue; nothing where nothing can go.
fn wanted(
    listed: &Listed,
    ceiling: &CeilingOf,
    workers: u32,
    most: NonZeroU16,
) -> Option<HotConsumption> {
    if !listed.state.is_consumed() || listed.paused {
        return None;
    }
    let queue = &listed.queue;
    let prefetch = match ceiling(&queue.account, queue.lane) {
        Some(0) => return None,
        Some(ceiling) => share_of(ceiling, workers),
        None => u16::MAX,
    };
    Some(HotConsumption {
        queue: queue.clone(),
        prefetch: NonZeroU16::new(prefetch)?.min(most),
    })
}

/// A worker's share of what a ceiling lets through in two seconds: then the whole of a window can go at
/// its opening while the last one's jobs are still at a slow carrier, and what one worker holds is not
/// passed for long by what others do.
fn share_of(ceiling: u32, workers: u32) -> u16 {
    let least = LEAST.min(ceiling.saturating_mul(LONGEST) / workers).max(1);
    let share = ceiling.saturating_mul(2).div_ceil(workers).max(least);
    u16::try_from(share).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_share_two_windows_and_hold_no_more_than_goes_in_five_seconds() {
        let share = |ceiling, workers| share_of(ceiling, workers);
        assert_eq!(share(80, 1), 160);
        assert_eq!(share(80, 4), 40);
        assert_eq!(share(80, 32), 10);
        assert_eq!(share(2, 4), 2);
        assert_eq!(share(1, 8), 1);
        assert_eq!(share(u32::MAX, 1), u16::MAX);
    }
}
