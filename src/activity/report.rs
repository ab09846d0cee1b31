//! Leaves what this process counts where all can read it, once a second.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::store::Store;
use super::tally::Tally;

const SECOND_MS: u64 = 1_000;

/// Leaves each second of the tally in the store, soon after it has ended, until `stop`; then what
/// was counted last. What cannot be left in time is dropped.
pub async fn report(tally: Tally, store: Arc<Store>, stop: CancellationToken) {
    let mut last = 0;
    while !stop.is_cancelled() {
        let second = next(last, store.now_ms() / SECOND_MS);
        last = second;
        let end = (second + 1) * SECOND_MS;
        // Its clock may turn out to be another one than was thought; never wait longer for that.
        let left = end.saturating_sub(store.now_ms()).min(SECOND_MS);
        let wake = Instant::now() + Duration::from_millis(left);
        tokio::select! {
            () = sleep_until(wake) => {}
            () = stop.cancelled() => {}
        }
        let counted = tally.turn();
        // Also without anything to tell: the next second is told by the clock that is learnt here.
        let _ = store.leave(second, &counted).await;
    }
}

/// The second that begins now: never one that was told before, unless the clock was set back.
fn next(last: u64, by_the_clock: u64) -> u64 {
    if last > by_the_clock + 1 {
        by_the_clock
    } else {
        by_the_clock.max(last + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_second_is_told_twice_although_the_clock_is_learnt_anew() {
        for (last, clock, second) in [
            (0, 500, 500),
            (500, 501, 501),
            (500, 500, 501),
            (501, 500, 502),
            (502, 500, 500),
        ] {
            assert_eq!(next(last, clock), second, "{last} {clock}");
        }
    }
}
