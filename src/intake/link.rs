//! One connection to publish on, with an outlet for each exchange, or for each lane of one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lanekeeper_client::wire::Late;
use lapin::options::ConfirmSelectOptions;
use lapin::{Channel, Connection};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use crate::dispatch::ports::PublishError;

use super::batch::{self, Judged};
use super::connection::{self, explain};
use super::outgoing::{Outgoing, Way};

/// The most batches under way at once by one way; each has a channel to itself.
const CHANNELS: usize = 8;

/// One connection to publish on.
pub(super) struct Link {
    connection: Connection,
    /// Channels in confirm mode with nothing outstanding.
    idle: Mutex<Vec<Channel>>,
    outlets: Mutex<HashMap<Way, Arc<Outlet>>>,
}

/// Where one way leads to. A queue that confirms nothing holds up no other.
struct Outlet {
    way: Way,
    free: Semaphore,
    overdue: Mutex<Overdue>,
}

/// Publishes that were not confirmed in time and whose end is not known yet. While there are any,
/// nothing more is published there: it would only pile up.
#[derive(Default)]
struct Overdue {
    count: usize,
    /// When the first of them fell due.
    since: Option<Instant>,
}

impl Link {
    pub(super) fn new(connection: Connection) -> Self {
        Self {
            connection,
            idle: Mutex::default(),
            outlets: Mutex::default(),
        }
    }

    pub(super) fn is_connected(&self) -> bool {
        self.connection.status().connected()
    }

    /// Whether the broker has said that it takes no publishes for now, as it does under an alarm.
    pub(super) fn is_blocked(&self) -> bool {
        self.connection.status().blocked()
    }

    /// Since when confirms have been overdue, if any are.
    pub(super) fn overdue_since(&self) -> Option<Instant> {
        let outlets = lock(&self.outlets);
        let since = outlets.values().map(|outlet| lock(&outlet.overdue).since);
        since.flatten().min()
    }

    /// Takes leave of the broker, for at most `limit`.
    pub(super) async fn close(&self, limit: Duration) {
        connection::close(&self.connection, limit).await;
    }

    /// Publishes what goes one way, as a batch on a channel of its own.
    ///
    /// # Errors
    /// When none of it was handed to the client library. All of these are certain.
    pub(super) async fn publish(
        self: &Arc<Self>,
        way: Way,
        messages: Vec<Outgoing>,
        deadline: Instant,
    ) -> Result<Judged, PublishError> {
        let outlet = self.outlet(way);
        self.check(&outlet)?;
        let Ok(Ok(_permit)) = timeout_at(deadline, outlet.free.acquire()).await else {
            return Err(PublishError::NotTried);
        };
        // Again: those before it may not have been confirmed.
        self.check(&outlet)?;
        let channel = self.channel(&outlet, deadline).await?;
        let (judged, late) = batch::publish(&channel, messages, deadline).await;
        if late.is_empty() {
            self.put_back(channel);
        } else {
            self.watch(outlet.clone(), late, channel, deadline);
        }
        Ok(judged)
    }

    /// Whether something would be handed over there now.
    ///
    /// # Errors
    /// Why not, for certain.
    pub(super) fn takes(&self, way: Way) -> Result<(), PublishError> {
        if !self.is_connected() {
            return Err(PublishError::Disconnected);
        }
        self.check(&self.outlet(way))
    }

    fn outlet(&self, way: Way) -> Arc<Outlet> {
        let mut outlets = lock(&self.outlets);
        let outlet = outlets
            .entry(way)
            .or_insert_with_key(|way| Arc::new(Outlet::new(way.clone())));
        Arc::clone(outlet)
    }

    /// What the client library is given while the broker reads nothing would be published later,
    /// without anybody to wait for it.
    fn check(&self, outlet: &Outlet) -> Result<(), PublishError> {
        if self.is_blocked() || outlet.is_overdue() {
            return Err(PublishError::NotTried);
        }
        Ok(())
    }

    /// A channel in confirm mode that nobody else uses.
    async fn channel(
        self: &Arc<Self>,
        outlet: &Arc<Outlet>,
        deadline: Instant,
    ) -> Result<Channel, PublishError> {
        if let Some(channel) = self.take_idle() {
            return Ok(channel);
        }
        if !self.is_connected() {
            return Err(PublishError::Disconnected);
        }
        let link = Arc::clone(self);
        let mut opening = Box::pin(async move { link.open_channel().await });
        match timeout_at(deadline, &mut opening).await {
            Ok(Ok(channel)) => Ok(channel),
            Ok(Err(error)) => {
                let why = explain(&error);
                tracing::warn!(why, "there is no channel to publish on");
                Err(PublishError::NotTried)
            }
            Err(_) => {
                let (link, outlet) = (Arc::clone(self), Arc::clone(outlet));
                outlet.fell_due(1, deadline);
                // Watched to its end: as long as it hangs, so would the next one.
                tokio::spawn(async move {
                    if let Ok(channel) = opening.await {
                        link.put_back(channel);
                    }
                    outlet.settled();
                });
                Err(PublishError::NotTried)
            }
        }
    }

    async fn open_channel(&self) -> lapin::Result<Channel> {
        let channel = self.connection.create_channel().await?;
        channel
            .confirm_select(ConfirmSelectOptions::default())
            .await?;
        Ok(channel)
    }

    fn take_idle(&self) -> Option<Channel> {
        let mut idle = lock(&self.idle);
        while let Some(channel) = idle.pop() {
            if channel.status().connected() {
                return Some(channel);
            }
        }
        None
    }

    fn put_back(&self, channel: Channel) {
        if channel.status().connected() {
            lock(&self.idle).push(channel);
        }
    }

    /// Watches overdue confirms to their end and only then lets the channel be used again.
    fn watch(self: &Arc<Self>, outlet: Arc<Outlet>, late: Late, channel: Channel, due: Instant) {
        let link = Arc::clone(self);
        outlet.fell_due(late.len(), due);
        tokio::spawn(async move {
            late.watch(|| outlet.settled()).await;
            link.put_back(channel);
        });
    }
}

impl Outlet {
    fn new(way: Way) -> Self {
        Self {
            way,
            free: Semaphore::new(CHANNELS),
            overdue: Mutex::default(),
        }
    }

    fn is_overdue(&self) -> bool {
        lock(&self.overdue).count > 0
    }

    fn fell_due(&self, count: usize, due: Instant) {
        let mut overdue = lock(&self.overdue);
        overdue.count += count;
        if overdue.since.is_none() {
            overdue.since = Some(due);
            tracing::warn!(way = %self.way, "the broker does not confirm: publishing there pauses until it does");
        }
    }

    fn settled(&self) {
        let mut overdue = lock(&self.overdue);
        overdue.count -= 1;
        if overdue.count == 0 {
            overdue.since = None;
            tracing::info!(way = %self.way, "nothing is overdue any more: publishing there goes on");
        }
    }
}

/// Nothing panics while it holds one of these locks, and what they guard would still be whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
