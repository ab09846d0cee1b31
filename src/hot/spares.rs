//! Queues that are made before it is known whose they will be.
//!
//! A quorum queue is not safe at once. What one confirms that was declared less than a second before
//! its broker is killed is lost, and so is the queue: reading from it hangs, and in the end costs the
//! connection (RabbitMQ 3.10.8, observed in all 14 trials of up to 0.8 s, and in neither of those of 1.0
//! and 1.5 s). So queues are declared beforehand, and only those become spare ones that have been there
//! for a while on one connection: the broker was not killed meanwhile. An account that needs a queue
//! gets one within milliseconds.

use std::time::Duration;

use futures_util::future::try_join_all;
use thiserror::Error;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::keeper::HotKeeper;
use super::rows;
use crate::domain::Lane;
use crate::intake::{HotError, HotSession};
use crate::postgres::explain;

/// How long a queue has to be there before jobs may be sent to it: twice what was observed.
const RIPE: Duration = Duration::from_secs(2);

/// Who takes longer to make one has given up, or is taken to have.
const PROMISING: Duration = Duration::from_secs(10);

/// For how long more of them than that stay: as long as others may still come to need one.
const LONG_SPARE: Duration = Duration::from_secs(60);

/// The most that are made in one go, however many accounts wait for one.
const AT_ONCE: u32 = 64;

/// How soon it is looked for missing ones, where nobody waits for one.
const LOOK: Duration = Duration::from_secs(5);

/// How soon, where somebody does.
const LOOK_WHILE_WANTED: Duration = Duration::from_secs(1);

/// What kept spare queues from being made.
#[derive(Debug, Error)]
enum SpareError {
    #[error("{}", explain(.0))]
    Database(#[from] sqlx::Error),
    #[error(transparent)]
    Broker(#[from] HotError),
}

/// How many accounts wait for a queue, by lane.
pub(super) type Wanted = [u32; 2];

/// Sees to it that there are spare queues.
pub(super) struct Spares {
    pub keeper: HotKeeper,
    pub wanted: watch::Receiver<Wanted>,
}

impl Spares {
    /// Makes spare queues as they are used up, until `stop`. Neither lane waits for the other.
    pub(super) async fn run(self, stop: CancellationToken) {
        let [one, other] = Lane::ALL.map(|lane| self.keep(lane));
        let keeping = async { tokio::join!(one, other) };
        stop.run_until_cancelled(keeping).await;
    }

    async fn keep(&self, lane: Lane) {
        let mut wanted = self.wanted.clone();
        loop {
            let count = wanted.borrow_and_update()[lane.index()];
            if let Err(error) = self.make(lane, count).await {
                tracing::debug!(%lane, %error, "spare queues could not be made");
            }
            // The other side lives as long as this one.
            let look = if count > 0 { LOOK_WHILE_WANTED } else { LOOK };
            let _ = timeout(look, wanted.changed()).await;
        }
    }

    async fn make(&self, lane: Lane, wanted: u32) -> Result<(), SpareError> {
        let Some(session) = self.keeper.broker.session() else {
            return Ok(());
        };
        if let Err(error) = self.clear(&session, lane).await {
            tracing::debug!(%lane, %error, "queues that nobody needs could not be deleted");
        }
        let numbers = self.take_numbers(lane, wanted).await?;
        if numbers.is_empty() {
            return Ok(());
        }
        let creating = numbers
            .iter()
            .map(|number| self.create(&session, lane, *number));
        let made = try_join_all(creating).await?.into_iter().flatten();
        let made: Vec<_> = made.collect();
        if made.is_empty() {
            return Ok(());
        }
        sleep(RIPE).await;
        // Otherwise it may be another broker by now, or the same one after a fall. A process that has
        // stood still hears of it only when it asks.
        session.workers().await?;
        let mut connection = self.keeper.pool.acquire().await?;
        rows::ripen(&mut connection, &made, PROMISING).await?;
        Ok(())
    }

    /// Declares a queue; gives its number, unless there is one of that name already. Such a one is of
    /// another database, or of this one before it was restored: there may be jobs in it.
    async fn create(
        &self,
        session: &HotSession,
        lane: Lane,
        number: i64,
    ) -> Result<Option<i64>, SpareError> {
        if session.look_at(lane, number).await?.is_some() {
            warn_of_strange(lane, number);
            let mut connection = self.keeper.pool.acquire().await?;
            rows::forget(&mut connection, number).await?;
            return Ok(None);
        }
        session.create(lane, number).await?;
        Ok(Some(number))
    }

    /// The numbers of those that are missing. All workers see to it, one at a time.
    async fn take_numbers(&self, lane: Lane, wanted: u32) -> Result<Vec<i64>, SpareError> {
        let prefix = self.keeper.list.prefix();
        let Some(mut transaction) = rows::lock_spares(&self.keeper.pool, prefix, lane).await?
        else {
            return Ok(Vec::new());
        };
        let there = rows::count(&mut transaction, prefix, lane, PROMISING).await?;
        let room = i64::from(self.keeper.options.most) - there.taken;
        let wished =
            i64::from(self.keeper.options.spare + wanted.min(AT_ONCE)).min(room) - there.spare;
        if wished <= 0 {
            return Ok(Vec::new());
        }
        let numbers = rows::add(&mut transaction, prefix, lane, wished).await?;
        transaction.commit().await?;
        Ok(numbers)
    }

    /// Deletes what was begun and not brought to an end, and spare queues that are too many.
    async fn clear(&self, session: &HotSession, lane: Lane) -> Result<(), SpareError> {
        let prefix = self.keeper.list.prefix();
        let mut connection = self.keeper.pool.acquire().await?;
        let options = &self.keeper.options;
        let keep = i64::from(options.spare.min(options.most));
        rows::retire(&mut connection, prefix, lane, keep, LONG_SPARE).await?;
        let after = PROMISING + self.keeper.broker.lateness();
        for number in rows::abandoned(&mut connection, prefix, lane, after).await? {
            match delete(session, lane, number).await {
                Ok(()) => rows::forget(&mut connection, number).await?,
                Err(error) => {
                    tracing::debug!(%lane, number, %error, "a queue that nobody needs could not be deleted");
                }
            }
        }
        Ok(())
    }
}

/// Deletes a queue to which nothing was ever sent; if there is something in it all the same, it is
/// another database's.
async fn delete(session: &HotSession, lane: Lane, number: i64) -> Result<(), HotError> {
    match session.look_at(lane, number).await? {
        Some(look) if look.is_used() => warn_of_strange(lane, number),
        _ => session.delete(lane, number).await?,
    }
    Ok(())
}

/// Warns of a queue that is not what this database says of its number.
pub(super) fn warn_of_strange(lane: Lane, number: i64) {
    tracing::warn!(%lane, number, "the broker's queue of this number is not as this database has it: gone, or made or used by others; it is left alone (see docs/OPERATIONS.md)");
}
