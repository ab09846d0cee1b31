//! Giving accounts queues of their own.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use sqlx::PgPool;
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::beat;
use super::list::{HotList, State};
use super::options::HotOptions;
use super::rows::{self, Row};
use crate::dispatch::Pressed;
use crate::domain::{AccountId, HotQueue, Lane};
use crate::intake::{HotBroker, HotError};
use crate::postgres::explain;
use crate::telemetry::Telemetry;

/// For how long an account is left alone after a split was made or found impossible: what lies in
/// the shared queue is shed all the same until it has gone over.
const REST: Duration = Duration::from_secs(5);

/// How often it is written down for which queues jobs wait.
const BEAT: Duration = Duration::from_secs(2);

/// Why an account has no queue of its own although it is under pressure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Declined {
    /// There are as many as there may be.
    TooMany,
    /// Another worker is at it.
    Elsewhere,
    /// Its last one is being given up.
    Closing,
    /// There is no connection to the broker.
    Disconnected,
}

/// What kept a split from being made.
#[derive(Debug, Error)]
enum SplitError {
    #[error("{}", explain(.0))]
    Database(#[from] sqlx::Error),
    #[error(transparent)]
    Broker(#[from] HotError),
}

/// Gives accounts under pressure queues of their own.
pub struct Splitter {
    /// Where it is written down.
    pub pool: PgPool,
    /// What is written, as far as is known here.
    pub list: Arc<HotList>,
    /// Where the queues are made.
    pub broker: HotBroker,
    /// When.
    pub options: HotOptions,
    /// What is told of it.
    pub telemetry: Telemetry,
}

impl Splitter {
    /// Splits off the queues of accounts that are told to be under pressure, until `stop`.
    pub async fn run(self, mut pressed: mpsc::UnboundedReceiver<Pressed>, stop: CancellationToken) {
        let mut resting: HashMap<(Lane, AccountId), Instant> = HashMap::new();
        let mut waiting: HashSet<i64> = HashSet::new();
        let mut beats = interval(BEAT);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            // Each step is carried through: only the wait for the next one ends with `stop`.
            let next = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                _ = beats.tick() => None,
                next = pressed.recv() => match next {
                    Some(next) => Some(next),
                    None => return,
                },
            };
            match next {
                Some(Pressed::Own(lane, account)) => {
                    waiting.extend(self.list.of(lane, &account).map(|one| one.queue.number));
                }
                Some(Pressed::Shared(lane, account)) => {
                    let key = (lane, account);
                    if resting
                        .get(&key)
                        .is_some_and(|until| *until > Instant::now())
                    {
                        continue;
                    }
                    self.split_off(lane, &key.1).await;
                    resting.insert(key, Instant::now() + REST);
                }
                None => {
                    let now = Instant::now();
                    resting.retain(|_, until| *until > now);
                    beat::touch(&self.pool, std::mem::take(&mut waiting)).await;
                }
            }
        }
    }

    async fn split_off(&self, lane: Lane, account: &AccountId) {
        match self.split(lane, account).await {
            Ok(Ok(queue)) => {
                self.telemetry.split(lane);
                tracing::info!(%lane, %account, number = queue.number, "an account has a queue of its own now: its jobs kept being shed");
            }
            Ok(Err(why)) => {
                if why == Declined::TooMany {
                    self.telemetry.split_declined(lane);
                }
                tracing::debug!(%lane, %account, ?why, "an account under pressure gets no queue of its own now");
            }
            Err(error) => {
                tracing::warn!(%lane, %account, %error, "an account under pressure could not be given a queue of its own");
            }
        }
    }

    /// Gives an account a queue, or has its jobs sent to the one that it has. The row is open before
    /// the queue is bound: nothing is ever sent to a queue from which nobody would consume.
    async fn split(
        &self,
        lane: Lane,
        account: &AccountId,
    ) -> Result<Result<HotQueue, Declined>, SplitError> {
        let Some(session) = self.broker.session() else {
            return Ok(Err(Declined::Disconnected));
        };
        let row = match self.claim(lane, account).await? {
            Ok(row) => row,
            Err(why) => return Ok(Err(why)),
        };
        session.create(&row.queue).await?;
        let mut connection = self.pool.acquire().await?;
        if !rows::become_state(&mut connection, &row, State::Open).await? {
            return Ok(Err(Declined::Elsewhere));
        }
        session.bind(&row.queue).await?;
        Ok(Ok(row.queue))
    }

    /// The row of the account's queue, for the next step to be taken here.
    async fn claim(
        &self,
        lane: Lane,
        account: &AccountId,
    ) -> Result<Result<Row, Declined>, SplitError> {
        let prefix = self.list.prefix();
        let Some(mut transaction) = rows::lock(&self.pool, prefix, lane, account).await? else {
            return Ok(Err(Declined::Elsewhere));
        };
        let row = match rows::find(&mut transaction, prefix, lane, account).await? {
            Some(row) if row.state == State::Closing => return Ok(Err(Declined::Closing)),
            Some(row) => rows::claim(&mut transaction, row).await?,
            None => {
                let most = self.options.most;
                match rows::add(&mut transaction, prefix, lane, account, most).await? {
                    Some(row) => row,
                    None => return Ok(Err(Declined::TooMany)),
                }
            }
        };
        transaction.commit().await?;
        Ok(Ok(row))
    }
}
