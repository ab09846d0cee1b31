//! Which queues of accounts' own there are, as far as this process knows.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use sqlx::{Connection as _, PgConnection, PgPool};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::rows;
use crate::domain::{AccountId, HotQueue, Lane};
use crate::postgres::{self, Copied, ONE_MOMENT};

/// How far a queue that is an account's has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Its account's jobs are sent there.
    Open,
    /// No more jobs are sent there, and it is consumed from.
    Draining,
    /// It is left, emptied and deleted.
    Closing,
}

impl State {
    const ALL: [Self; 3] = [Self::Open, Self::Draining, Self::Closing];

    /// The name in the table.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Draining => "draining",
            Self::Closing => "closing",
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// Whether workers consume from it.
    #[must_use]
    pub const fn is_consumed(self) -> bool {
        matches!(self, Self::Open | Self::Draining)
    }
}

/// A queue as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The queue.
    pub queue: HotQueue,
    /// How far it has come.
    pub state: State,
    /// Whether its account is paused.
    pub paused: bool,
}

/// The queues that are listed now: the last list that was read.
#[derive(Debug)]
pub struct HotList {
    prefix: String,
    held: watch::Sender<Held>,
}

#[derive(Debug, Clone, Default)]
struct Held {
    queues: Arc<[Listed]>,
    /// Their places, by lane and account.
    places: Arc<[HashMap<AccountId, usize>; 2]>,
    version: Option<i64>,
}

impl Held {
    fn of(&self, lane: Lane, account: &AccountId) -> Option<&Listed> {
        let place = self.places[lane.index()].get(account)?;
        self.queues.get(*place)
    }
}

impl HotList {
    /// The list of the queues whose names begin with a prefix; nothing is known of them yet.
    #[must_use]
    pub fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
            held: watch::Sender::default(),
        }
    }

    /// What the names of its queues begin with.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// What is listed now.
    #[must_use]
    pub fn now(&self) -> Arc<[Listed]> {
        Arc::clone(&self.held.borrow().queues)
    }

    /// An account's queue in a lane.
    #[must_use]
    pub fn of(&self, lane: Lane, account: &AccountId) -> Option<Listed> {
        self.held.borrow().of(lane, account).cloned()
    }

    /// Whether an account's jobs of a lane are sent to a queue of its own.
    #[must_use]
    pub fn is_open(&self, lane: Lane, account: &AccountId) -> bool {
        let held = self.held.borrow();
        let its = held.of(lane, account);
        its.is_some_and(|one| one.state == State::Open)
    }

    /// Waits until another list is read than the one that was seen by whoever holds `changes`.
    pub(super) fn changes(&self) -> watch::Receiver<impl Sized + use<>> {
        self.held.subscribe()
    }
}

/// The queues that are listed for a prefix at this moment, in order of their numbers.
///
/// # Errors
/// When the database does not say.
pub async fn listed(connection: &mut PgConnection, prefix: &str) -> sqlx::Result<Vec<Listed>> {
    rows::of(connection, prefix).await
}

/// Follows the table in the database that `pool` leads to, until `stop`; what was read last holds
/// while the database is away.
pub async fn follow(list: Arc<HotList>, pool: &PgPool, stop: CancellationToken) {
    postgres::keep(list, pool, stop).await;
}

impl Copied for HotList {
    type Read = (Vec<(String, Listed)>, i64);

    const CHANNEL: &'static str = "lanekeeper_hot_queues";
    const WHAT: &'static str = "the list of accounts' own queues";
    const BEFORE: &'static str = "none of them is consumed from";

    fn version(&self) -> Option<i64> {
        self.held.borrow().version
    }

    async fn version_now(connection: &mut PgConnection) -> sqlx::Result<i64> {
        rows::version(connection).await
    }

    async fn read(connection: &mut PgConnection) -> sqlx::Result<Self::Read> {
        let mut moment = connection.begin_with(ONE_MOMENT).await?;
        let version = rows::version(&mut moment).await?;
        let all = rows::all(&mut moment).await?;
        moment.commit().await?;
        Ok((all, version))
    }

    async fn take_in(&self, (all, version): Self::Read, _: Duration) {
        let mine = all.into_iter().filter(|(prefix, _)| *prefix == self.prefix);
        let queues: Arc<[Listed]> = mine.map(|(_, listed)| listed).collect();
        let mut places = <[HashMap<AccountId, usize>; 2]>::default();
        for (place, one) in queues.iter().enumerate() {
            places[one.queue.lane.index()].insert(one.queue.account.clone(), place);
        }
        self.held.send_replace(Held {
            queues,
            places: Arc::new(places),
            version: Some(version),
        });
    }
}
