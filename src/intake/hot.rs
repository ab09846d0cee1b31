//! What is done to accounts' own queues, apart from consuming them.
//!
//! Each step is bound to the connection that it was begun on. A process that stands still for long
//! loses that connection by its heartbeat, so that no step is carried out much later than it was
//! decided on: [`HotBroker::lateness`] says how much.

use std::num::NonZeroU16;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lapin::message::BasicGetMessage;
use lapin::options::{
    BasicAckOptions, BasicGetOptions, QueueBindOptions, QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::types::{FieldTable, ShortString};
use lapin::{Channel, Connection};
use thiserror::Error;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::dispatch::ports::PublishError;
use crate::domain::{HotQueue, JobHeaders, Lane, Payload};

use super::consumer::headers;
use super::error::IntakeError;
use super::names::Names;
use super::options::AmqpOptions;
use super::outgoing::Outgoing;
use super::passive;
use super::publisher::Publisher;
use super::topology;

/// The most jobs that are moved out of a queue in one go.
const MOVED_AT_ONCE: usize = 256;

/// The connection that consumes, while there is one.
#[derive(Clone)]
pub(super) struct Wire {
    pub(super) connection: Arc<Connection>,
    pub(super) since: Instant,
}

/// Why a step was not carried out, or may not have been.
#[derive(Debug, Error)]
pub enum HotError {
    /// The broker was asked and did not do it.
    #[error(transparent)]
    Broker(#[from] IntakeError),
    /// A job could not be published elsewhere; it is still in its queue.
    #[error("a job could not be moved: {0}")]
    Move(#[from] PublishError),
}

/// How a queue stands, as far as a passive declaration tells: ready jobs only, and for some seconds
/// after a broker's restart none of those either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HotLook {
    /// Ready jobs.
    pub ready: u32,
    /// Consumers.
    pub consumers: u32,
}

impl HotLook {
    /// Whether there are jobs in it, or somebody waits for some.
    #[must_use]
    pub const fn is_used(self) -> bool {
        self.ready > 0 || self.consumers > 0
    }
}

/// An account's own queue that is to be consumed from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HotConsumption {
    /// The queue.
    pub queue: HotQueue,
    /// Unsettled messages that it may have here: at least 1.
    pub prefetch: NonZeroU16,
}

/// Looks after accounts' own queues at the broker.
#[derive(Clone)]
pub struct HotBroker {
    pub(super) names: Names,
    pub(super) options: AmqpOptions,
    pub(super) publisher: Arc<Publisher>,
    pub(super) wire: watch::Receiver<Option<Wire>>,
    pub(super) wanted: watch::Sender<Arc<[HotConsumption]>>,
}

impl HotBroker {
    /// Consumes from these queues from now on, and from no others of their kind. What was taken from
    /// others is settled before they are left.
    pub fn consume(&self, queues: Vec<HotConsumption>) {
        self.wanted.send_if_modified(|now| {
            let is_other = **now != *queues;
            if is_other {
                *now = queues.into();
            }
            is_other
        });
    }

    /// A session on the present connection, if there is one.
    #[must_use]
    pub fn session(&self) -> Option<HotSession> {
        let wire = self.wire.borrow().clone()?;
        Some(HotSession {
            names: self.names.clone(),
            publisher: Arc::clone(&self.publisher),
            limit: self.options.connect_timeout,
            wire,
            idle: Mutex::default(),
        })
    }

    /// How long after it was decided on a step may still be carried out, at most.
    #[must_use]
    pub fn lateness(&self) -> Duration {
        self.options.heartbeat * 3 + self.options.connect_timeout
    }
}

/// Steps on one connection, never on a later one.
pub struct HotSession {
    names: Names,
    publisher: Arc<Publisher>,
    limit: Duration,
    wire: Wire,
    /// A channel for the next step.
    idle: Mutex<Option<Channel>>,
}

impl HotSession {
    /// For how long there has been this connection.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.wire.since.elapsed()
    }

    /// Declares the queue of that number, with nothing bound to it yet.
    ///
    /// # Errors
    /// When the broker does not confirm it.
    pub async fn create(&self, lane: Lane, number: i64) -> Result<(), HotError> {
        let name = self.names.hot(lane, number);
        self.on_channel(async |channel| {
            let options = QueueDeclareOptions {
                durable: true,
                ..QueueDeclareOptions::default()
            };
            let declared = channel.queue_declare(name.clone(), options, topology::quorum());
            topology::within(self.limit, &format!("declaring the queue {name}"), declared)
                .await
                .map(drop)
        })
        .await
    }

    /// Sends new jobs of its account and lane there.
    ///
    /// # Errors
    /// When the broker does not confirm it.
    pub async fn bind(&self, queue: &HotQueue) -> Result<(), HotError> {
        let name = self.names.hot(queue.lane, queue.number);
        let key = Names::job_key(queue.lane, &queue.account);
        self.on_channel(async |channel| {
            let (options, arguments) = (QueueBindOptions::default(), FieldTable::default());
            let what = format!("binding {name}");
            let bound = channel.queue_bind(name, self.names.send(), key, options, arguments);
            topology::within(self.limit, &what, bound).await
        })
        .await
    }

    /// Sends no more jobs there.
    ///
    /// # Errors
    /// When the broker does not confirm it.
    pub async fn unbind(&self, queue: &HotQueue) -> Result<(), HotError> {
        let name = self.names.hot(queue.lane, queue.number);
        let key = Names::job_key(queue.lane, &queue.account);
        self.on_channel(async |channel| {
            let what = format!("unbinding {name}");
            let unbound = channel.queue_unbind(name, self.names.send(), key, FieldTable::default());
            topology::within(self.limit, &what, unbound).await
        })
        .await
    }

    /// How it stands; `None` when there is no such queue.
    ///
    /// # Errors
    /// When the broker does not say.
    pub async fn look(&self, queue: &HotQueue) -> Result<Option<HotLook>, HotError> {
        self.look_at(queue.lane, queue.number).await
    }

    /// How the queue of that number stands; `None` when there is none.
    ///
    /// # Errors
    /// When the broker does not say.
    pub async fn look_at(&self, lane: Lane, number: i64) -> Result<Option<HotLook>, HotError> {
        self.look_at_queue(self.names.hot(lane, number)).await
    }

    /// How many workers consume from the lanes' shared queues: each has one consumer of each lane that
    /// it takes jobs of.
    ///
    /// # Errors
    /// When the broker does not say.
    pub async fn workers(&self) -> Result<u32, HotError> {
        let mut workers = 0;
        for lane in Lane::ALL {
            let look = self.look_at_queue(self.names.lane(lane)).await?;
            workers = workers.max(look.map_or(0, |look| look.consumers));
        }
        Ok(workers)
    }

    async fn look_at_queue(&self, name: ShortString) -> Result<Option<HotLook>, HotError> {
        self.on_channel(async |channel| {
            let what = format!("looking at the queue {name}");
            let found = passive::find(channel, name);
            let queue = topology::within(self.limit, &what, found).await?;
            Ok(queue.map(|queue| HotLook {
                ready: queue.message_count(),
                consumers: queue.consumer_count(),
            }))
        })
        .await
    }

    /// Moves jobs from the queue to where they would be published now, a few hundred at most; gives
    /// how many there were. Each is taken from the queue only when it is stored elsewhere.
    ///
    /// # Errors
    /// When the broker does not say, or does not confirm one of them; that one stays where it is.
    pub async fn move_out(&self, queue: &HotQueue) -> Result<usize, HotError> {
        let name = self.names.hot(queue.lane, queue.number);
        let what = format!("emptying {name}");
        let connection = &self.wire.connection;
        let channel =
            topology::within(self.limit, "opening a channel", connection.create_channel());
        let channel = channel.await?;
        let moved = self.move_through(&channel, queue, &what).await;
        // Whatever was not acknowledged returns to the queue with this. Should the lock be lost before,
        // no other worker deletes the queue meanwhile: the broker counts whoever holds a job that was
        // got as a consumer.
        let closing = channel.close(200, "moved".into());
        topology::within(self.limit, &what, closing).await?;
        moved
    }

    async fn move_through(
        &self,
        channel: &Channel,
        queue: &HotQueue,
        what: &str,
    ) -> Result<usize, HotError> {
        let mut last = None;
        let mut messages = Vec::new();
        while messages.len() < MOVED_AT_ONCE {
            let getting = channel.basic_get(
                self.names.hot(queue.lane, queue.number),
                BasicGetOptions::default(),
            );
            let Some(got) = topology::within(self.limit, what, getting).await? else {
                break;
            };
            last = Some(got.delivery_tag);
            messages.push(self.moved(queue, got));
        }
        let moved = messages.len();
        if let Some(tag) = last {
            for result in self.publisher.publish(messages).await {
                result?;
            }
            let all = BasicAckOptions { multiple: true };
            topology::within(self.limit, what, channel.basic_ack(tag, all)).await?;
        }
        Ok(moved)
    }

    /// Deletes the queue of that number. That there is none is as good.
    ///
    /// # Errors
    /// When the broker does not confirm it.
    pub async fn delete(&self, lane: Lane, number: i64) -> Result<(), HotError> {
        let name = self.names.hot(lane, number);
        self.on_channel(async |channel| {
            let what = format!("deleting {name}");
            let deleted = channel.queue_delete(name, QueueDeleteOptions::default());
            topology::within(self.limit, &what, deleted).await.map(drop)
        })
        .await
    }

    fn moved(&self, queue: &HotQueue, got: BasicGetMessage) -> Outgoing {
        let message = got.delivery;
        let known: JobHeaders = headers(message.properties.headers().as_ref(), false);
        let id = message.properties.message_id().clone();
        Outgoing::moved(&self.names, queue, id, &known, Payload::new(message.data))
    }

    /// Does something on a channel, which a refusal closes.
    async fn on_channel<T>(
        &self,
        act: impl AsyncFnOnce(&Channel) -> Result<T, IntakeError>,
    ) -> Result<T, HotError> {
        let idle = self.idle().take();
        let channel = if let Some(channel) = idle.filter(|it| it.status().connected()) {
            channel
        } else {
            let opening = self.wire.connection.create_channel();
            topology::within(self.limit, "opening a channel", opening).await?
        };
        let done = act(&channel).await?;
        *self.idle() = Some(channel);
        Ok(done)
    }

    fn idle(&self) -> MutexGuard<'_, Option<Channel>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
