//! Giving accounts queues of their own.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use sqlx::PgTransaction;
use thiserror::Error;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::beat;
use super::keeper::HotKeeper;
use super::list::State;
use super::rows::{self, Assigned, Row};
use super::spares::{self, Spares, Wanted};
use crate::dispatch::Pressed;
use crate::domain::{AccountId, HotQueue, Lane};
use crate::intake::{HotError, HotLook, HotSession};
use crate::postgres::explain;

/// For how long an account is left alone after a split was made or found impossible: what lies in
/// the shared queue is shed all the same until it has gone over.
const REST: Duration = Duration::from_secs(5);

/// How often it is written down for which queues jobs wait.
const BEAT: Duration = Duration::from_secs(2);

/// How often it is tried again for accounts that wait for a spare queue.
const TICK: Duration = Duration::from_millis(250);

/// For how long an account waits for a spare queue; then it has to be told of anew.
const PATIENCE: Duration = Duration::from_secs(10);

/// What was done for an account under pressure.
#[derive(Debug)]
enum Split {
    /// It has a queue of its own.
    Made(HotQueue),
    /// Its jobs are sent to the queue that it had.
    Renewed(HotQueue),
    /// Nothing.
    Declined(Declined),
}

/// Why nothing was done for an account under pressure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Declined {
    /// Another worker has just done it: what lies in the shared queue is shed all the same.
    Done,
    /// There are as many as there may be.
    TooMany,
    /// There is no spare queue just now; some are being made.
    NoneSpare,
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
    #[error("the broker has no such queue any more; it is given up")]
    Missing,
}

/// Gives accounts under pressure queues of their own.
pub struct Splitter {
    keeper: HotKeeper,
}

/// An account in a lane.
type Place = (Lane, AccountId);

/// What a splitter remembers from one report to the next.
#[derive(Default)]
struct Memory {
    /// Accounts that are left alone, until when.
    resting: HashMap<Place, Instant>,
    /// Accounts that wait for a spare queue, and until when that is worth while.
    waiting: HashMap<Place, Instant>,
    /// Queues of which jobs wait for their ceilings.
    needed: HashSet<i64>,
}

impl Splitter {
    /// A splitter that has what it needs.
    #[must_use]
    pub fn new(keeper: HotKeeper) -> Self {
        Self { keeper }
    }

    /// Splits off the queues of accounts that are told to be under pressure, until `stop`.
    pub async fn run(self, mut pressed: mpsc::UnboundedReceiver<Pressed>, stop: CancellationToken) {
        let (wanted, watched) = watch::channel(Wanted::default());
        let spares = Spares {
            keeper: self.keeper.clone(),
            wanted: watched,
        };
        tokio::join!(spares.run(stop.clone()), async {
            let mut memory = Memory::default();
            let mut ticks = interval(TICK);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut beats = interval(BEAT);
            beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                // Each step is carried through: only the wait for the next one ends with `stop`.
                tokio::select! {
                    biased;
                    () = stop.cancelled() => return,
                    _ = beats.tick() => self.beat(&mut memory).await,
                    next = pressed.recv() => match next {
                        Some(next) => self.on_pressed(&mut memory, next).await,
                        None => return,
                    },
                    _ = ticks.tick() => self.serve_waiting(&mut memory).await,
                }
                wanted.send_if_modified(|now| {
                    let waiting = memory.waiting_by_lane();
                    waiting != std::mem::replace(now, waiting)
                });
            }
        });
    }

    async fn beat(&self, memory: &mut Memory) {
        let now = Instant::now();
        memory.resting.retain(|_, until| *until > now);
        beat::touch(&self.keeper.pool, std::mem::take(&mut memory.needed)).await;
    }

    async fn on_pressed(&self, memory: &mut Memory, pressed: Pressed) {
        match pressed {
            Pressed::Own(lane, account) => {
                let own = self.keeper.list.of(lane, &account);
                memory.needed.extend(own.map(|one| one.queue.number));
            }
            Pressed::Shared(lane, account) => {
                let place = (lane, account);
                if !memory.is_busy_with(&place) {
                    self.split_off(memory, place).await;
                }
            }
        }
    }

    /// Tries again for those that wait for a spare queue, lane by lane, until there is none.
    async fn serve_waiting(&self, memory: &mut Memory) {
        let now = Instant::now();
        memory.waiting.retain(|_, until| *until > now);
        for lane in Lane::ALL {
            let its = memory
                .waiting
                .iter()
                .filter(|((other, _), _)| *other == lane);
            let its: Vec<_> = its.map(|(place, until)| (place.clone(), *until)).collect();
            for (place, until) in its {
                memory.waiting.remove(&place);
                self.split_off(memory, place.clone()).await;
                if let Some(still_waits) = memory.waiting.get_mut(&place) {
                    *still_waits = until;
                    break;
                }
            }
        }
    }

    async fn split_off(&self, memory: &mut Memory, place: Place) {
        let (lane, account) = &place;
        let now = Instant::now();
        match self.split(*lane, account).await {
            Ok(Split::Made(HotQueue { number, .. })) => {
                self.keeper.telemetry.split(*lane);
                tracing::info!(%lane, %account, number, "an account has a queue of its own now: its jobs kept being shed");
            }
            Ok(Split::Renewed(HotQueue { number, .. })) => {
                tracing::info!(%lane, %account, number, "an account's jobs are sent to its own queue again: they kept being shed");
            }
            Ok(Split::Declined(Declined::NoneSpare)) => {
                memory.waiting.insert(place, now + PATIENCE);
                return;
            }
            Ok(Split::Declined(why)) => {
                if why == Declined::TooMany {
                    self.keeper.telemetry.split_declined(*lane);
                }
                tracing::debug!(%lane, %account, ?why, "nothing is done for an account under pressure");
            }
            Err(error) => {
                tracing::warn!(%lane, %account, %error, "an account under pressure could not be given a queue of its own");
            }
        }
        memory.resting.insert(place, now + REST);
    }

    /// Gives an account a queue, or has its jobs sent to the one that it has. The row is open before
    /// the queue is bound: nothing is ever sent to a queue from which nobody would consume.
    async fn split(&self, lane: Lane, account: &AccountId) -> Result<Split, SplitError> {
        let Some(session) = self.keeper.broker.session() else {
            return Ok(Split::Declined(Declined::Disconnected));
        };
        let prefix = self.keeper.list.prefix();
        let Some(mut transaction) = rows::lock(&self.keeper.pool, prefix, lane, account).await?
        else {
            return Ok(Split::Declined(Declined::Elsewhere));
        };
        if let Some(row) = rows::find(&mut transaction, prefix, lane, account).await? {
            return self.renew(&session, transaction, row).await;
        }
        let spare = rows::oldest_spare(&mut transaction, prefix, lane).await?;
        if let Some(number) = spare {
            let look = session.look_at(lane, number).await?;
            if look.is_none_or(HotLook::is_used) {
                // Another account has just got it; or it was deleted by hand, or is used by somebody
                // whose database is not this one any more.
                if rows::forget_spare(&mut transaction, number).await? {
                    spares::warn_of_strange(lane, number);
                }
                transaction.commit().await?;
                return Ok(Split::Declined(Declined::NoneSpare));
            }
        }
        let most = self.keeper.options.most;
        let assigned = rows::assign(&mut transaction, prefix, lane, account, most, spare).await?;
        let queue = match assigned {
            Assigned::Queue(queue) => queue,
            Assigned::TooMany => return Ok(Split::Declined(Declined::TooMany)),
            Assigned::NoneSpare => return Ok(Split::Declined(Declined::NoneSpare)),
        };
        transaction.commit().await?;
        session.bind(&queue).await?;
        Ok(Split::Made(queue))
    }

    /// Binds an account's queue again: it was about to be given up, or whoever opened it did not come
    /// to binding it. One that the broker does not have is given up: a new one would not be safe yet.
    async fn renew(
        &self,
        session: &HotSession,
        mut transaction: PgTransaction<'static>,
        row: Row,
    ) -> Result<Split, SplitError> {
        match row.state {
            State::Closing => return Ok(Split::Declined(Declined::Closing)),
            State::Open if row.changed < REST => {
                // Whoever has just opened it may have been killed before binding it.
                session.bind(&row.queue).await?;
                return Ok(Split::Declined(Declined::Done));
            }
            State::Open | State::Draining => {}
        }
        let is_there = session.look(&row.queue).await?.is_some();
        let state = if is_there {
            State::Open
        } else {
            State::Closing
        };
        if !rows::become_state(&mut transaction, &row, state).await? {
            return Ok(Split::Declined(Declined::Elsewhere));
        }
        transaction.commit().await?;
        if !is_there {
            return Err(SplitError::Missing);
        }
        session.bind(&row.queue).await?;
        Ok(Split::Renewed(row.queue))
    }
}

impl Memory {
    fn is_busy_with(&self, place: &Place) -> bool {
        let rests = self.resting.get(place);
        rests.is_some_and(|until| *until > Instant::now()) || self.waiting.contains_key(place)
    }

    fn waiting_by_lane(&self) -> Wanted {
        Lane::ALL.map(|lane| {
            let its = self.waiting.keys().filter(|(other, _)| *other == lane);
            u32::try_from(its.count()).unwrap_or(u32::MAX)
        })
    }
}
