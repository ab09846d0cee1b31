//! The play itself: offers are published when they are due, and each second is told as it ends.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::scenario::Offer;
use super::stage::{Publisher, Stage};
use super::tally::{ByLane, Record, Second};

/// How soon a transactional job must have left where that is promised.
pub const AT_ONCE: Duration = Duration::from_secs(1);

/// How a play ended.
#[derive(Debug, Clone)]
pub struct Ending {
    /// Somebody stopped it early.
    pub interrupted: bool,
    /// How long it took.
    pub lasted: Duration,
    /// What became of every job.
    pub record: Record,
    /// How often jobs were sent back because of their ceiling.
    pub sheds: ByLane,
    /// Decisions made without the shared counter.
    pub fallbacks: u64,
}

/// Plays until everything that was offered has ended, but at most so many seconds or until `stop`,
/// and calls `show` at the end of each second.
///
/// # Errors
/// When `show` fails.
pub async fn play(
    mut stage: Stage,
    offers: impl Iterator<Item = Offer> + Send + 'static,
    most_seconds: u32,
    stop: impl Future<Output = ()>,
    mut show: impl FnMut(&Second) -> io::Result<()>,
) -> io::Result<Ending> {
    let started = Instant::now();
    let mut publishing = JoinSet::new();
    publishing.spawn(publish(offers, stage.publisher(), started));
    let mut stop = pin!(stop);
    let mut sheds_before = [0; 2];
    let mut number = 0;
    loop {
        number += 1;
        let interrupted = tokio::select! {
            () = sleep_until(started + Duration::from_secs(number.into())) => false,
            () = &mut stop => true,
        };
        stage.note_ends();
        let is_over = publishing.try_join_next().is_some() || publishing.is_empty();
        let is_done = is_over && stage.tally.waiting() == [0; 2];
        if !interrupted && !is_done && number < most_seconds {
            show(&close_second(&stage, number, &mut sheds_before))?;
            continue;
        }
        publishing.shutdown().await;
        let now = Instant::now();
        let left = stage.close().await;
        show(&close_second(&stage, number, &mut sheds_before))?;
        return Ok(Ending {
            interrupted,
            lasted: now - started,
            record: stage.tally.record(&left, AT_ONCE, now),
            sheds: stage.sheds(),
            fallbacks: stage.fallbacks(),
        });
    }
}

fn close_second(stage: &Stage, number: u32, sheds_before: &mut ByLane) -> Second {
    let sheds = stage.sheds();
    let before = std::mem::replace(sheds_before, sheds);
    let shed = [0, 1].map(|lane| sheds[lane] - before[lane]);
    stage.tally.close_second(number, shed, Instant::now())
}

async fn publish(offers: impl Iterator<Item = Offer>, publisher: Publisher, started: Instant) {
    for offer in offers {
        sleep_until(started + offer.at).await;
        publisher.publish(offer);
    }
}
