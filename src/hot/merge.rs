//! Taking queues away from accounts that no longer need them.
//!
//! It goes by steps, each by whatever worker comes first: jobs are no longer sent there; a while later
//! every worker leaves; then what is left is moved, and the queue is deleted. What can be known of a
//! queue over AMQP is little. A passive declaration counts no unsettled jobs, and after a restart of
//! the broker no jobs at all; `basic.get` tells the truth, and only of what nobody has taken. Hence: no
//! consumers at all, nothing to get twice with some time between, and still no consumers.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use sqlx::PgTransaction;
use thiserror::Error;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;

use super::keeper::HotKeeper;
use super::list::State;
use super::rows::{self, Row};
use crate::domain::{AccountId, HotQueue, Lane};
use crate::intake::{HotError, HotLook, HotSession};
use crate::postgres::explain;

/// How often it is looked whether all workers have left.
const LOOK: Duration = Duration::from_millis(500);

/// A queue that still holds jobs is left all the same after so many times the time to settle: its
/// account is paused, or its ceiling is 0.
const PATIENCE: u32 = 10;

/// How many steps are taken at once: each has a connection to the database meanwhile, and emptying a
/// queue takes seconds.
const AT_ONCE: usize = 3;

/// What kept a step from being taken; a later round tries again.
#[derive(Debug, Error)]
enum MergeError {
    #[error("{}", explain(.0))]
    Database(#[from] sqlx::Error),
    #[error(transparent)]
    Broker(#[from] HotError),
    #[error("workers still consume from it")]
    NotLeft,
    #[error("another worker has taken a step meanwhile")]
    Overtaken,
}

/// Takes queues away from accounts that no longer need them.
#[derive(Clone)]
pub struct Merger {
    keeper: HotKeeper,
}

impl Merger {
    /// A merger that has what it needs.
    #[must_use]
    pub fn new(keeper: HotKeeper) -> Self {
        Self { keeper }
    }

    /// Looks for queues that are no longer needed, time and again, until `stop`. A step that ends
    /// half-way leaves nothing that the next one does not find: a crash would do the same.
    pub async fn run(self, stop: CancellationToken) {
        let mut looks = interval(self.keeper.options.look_every());
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while stop.run_until_cancelled(looks.tick()).await.is_some() {
            let session = self.keeper.broker.session();
            // Only who has long had its connection knows what it sees.
            if let Some(session) = session.filter(|it| it.age() >= self.keeper.options.settle) {
                let looking = self.look_at_all(&session);
                stop.run_until_cancelled(looking).await;
            }
        }
    }

    async fn look_at_all(&self, session: &HotSession) {
        let due = match self.due().await {
            Ok(due) => due,
            Err(error) => {
                let why = explain(&error);
                tracing::debug!(
                    why,
                    "it is not known which accounts no longer need their queues"
                );
                return;
            }
        };
        let stepping = |(lane, account)| self.step_or_say(session, lane, account);
        stream::iter(due)
            .for_each_concurrent(AT_ONCE, stepping)
            .await;
    }

    async fn due(&self) -> sqlx::Result<Vec<(Lane, AccountId)>> {
        let mut connection = self.keeper.pool.acquire().await?;
        let prefix = self.keeper.list.prefix();
        let settle = self.keeper.options.settle;
        rows::due(&mut connection, prefix, self.idle(), settle).await
    }

    async fn step_or_say(&self, session: &HotSession, lane: Lane, account: AccountId) {
        if let Err(error) = self.step(session, lane, &account).await {
            tracing::debug!(%lane, %account, %error, "a queue of an account's own could not be brought nearer to its end");
        }
    }

    /// Takes the next step towards the end of a queue, if it is time.
    async fn step(
        &self,
        session: &HotSession,
        lane: Lane,
        account: &AccountId,
    ) -> Result<(), MergeError> {
        let prefix = self.keeper.list.prefix();
        let Some(mut transaction) = rows::lock(&self.keeper.pool, prefix, lane, account).await?
        else {
            return Ok(());
        };
        let Some(row) = rows::find(&mut transaction, prefix, lane, account).await? else {
            return Ok(());
        };
        match row.state {
            State::Open if row.pressed > self.idle() => {
                if session.look(&row.queue).await?.is_none_or(is_empty) {
                    session.unbind(&row.queue).await?;
                    self.advance(transaction, &row, State::Draining).await?;
                }
                Ok(())
            }
            State::Draining if row.changed > self.keeper.options.settle => {
                let empty = session.look(&row.queue).await?.is_none_or(is_empty);
                if empty || row.changed > self.keeper.options.settle * PATIENCE {
                    self.advance(transaction, &row, State::Closing).await?;
                }
                Ok(())
            }
            State::Closing => self.finish(session, transaction, &row).await,
            State::Open | State::Draining => Ok(()),
        }
    }

    /// For how long no job may have waited before a queue is given up.
    fn idle(&self) -> Duration {
        self.keeper.options.idle.max(self.late())
    }

    /// How late a step may come that somebody else has begun: twice what the broker allows, for the
    /// heartbeats of other workers may be longer than this one's.
    fn late(&self) -> Duration {
        self.keeper
            .broker
            .lateness()
            .min(self.keeper.options.settle)
            * 2
    }

    async fn advance(
        &self,
        mut transaction: PgTransaction<'static>,
        row: &Row,
        state: State,
    ) -> Result<(), MergeError> {
        if !rows::become_state(&mut transaction, row, state).await? {
            return Err(MergeError::Overtaken);
        }
        transaction.commit().await?;
        Ok(())
    }

    /// Empties a queue that workers have been told to leave, and deletes it. The transaction holds
    /// the lock meanwhile.
    async fn finish(
        &self,
        session: &HotSession,
        mut transaction: PgTransaction<'static>,
        row: &Row,
    ) -> Result<(), MergeError> {
        let give_up_at = Instant::now() + self.keeper.options.settle;
        let mut empty_since: Option<Instant> = None;
        loop {
            rows::still_mine(&mut transaction, row.queue.number).await?;
            match session.look(&row.queue).await? {
                None => break,
                Some(HotLook { consumers: 1.., .. }) => empty_since = None,
                Some(HotLook { consumers: 0, .. }) => {
                    if session.move_out(&row.queue).await? > 0 {
                        empty_since = None;
                        continue;
                    }
                    let since = *empty_since.get_or_insert_with(Instant::now);
                    if since.elapsed() >= self.keeper.options.apart()
                        && self.is_deserted(session, row).await?
                    {
                        session.delete(row.queue.lane, row.queue.number).await?;
                        break;
                    }
                }
            }
            if empty_since.is_none() && Instant::now() > give_up_at {
                return Err(MergeError::NotLeft);
            }
            sleep(LOOK.min(self.keeper.options.apart())).await;
        }
        rows::forget(&mut transaction, row.queue.number).await?;
        transaction.commit().await?;
        self.keeper.telemetry.merged(row.queue.lane);
        let HotQueue {
            lane,
            account,
            number,
        } = &row.queue;
        tracing::info!(%lane, %account, number, "an account shares the lane's queue again");
        Ok(())
    }

    async fn is_deserted(&self, session: &HotSession, row: &Row) -> Result<bool, MergeError> {
        let look = session.look(&row.queue).await?;
        Ok(look.is_none_or(|look| look.consumers == 0 && look.ready == 0))
    }
}

fn is_empty(look: HotLook) -> bool {
    look.ready == 0
}
