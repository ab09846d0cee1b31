//! Exchanges, queues and bindings: all of them, every time.
//!
//! Declaring what exists already changes nothing, so the whole topology is declared at the start
//! and after each loss: whatever was deleted meanwhile, or lost with the broker's disk, is back.
//!
//! Why it is as it is:
//! - Publishers send to one exchange. What nothing is bound for falls through alternate exchanges,
//!   so that a job is never dropped for want of a binding, only put into its lane's shared queue.
//! - The lane queues do not dead-letter. A publisher's malformed `x-death` header can stop
//!   at-least-once dead-lettering on a whole broker, so only queues that workers alone write do it.
//! - Every delay has its own queue with one TTL, because only the head of a queue expires.

use std::time::Duration;

use lapin::options::{ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{Channel, Connection, ExchangeKind};
use tokio::time::timeout;

use crate::dispatch::ports::Route;
use crate::domain::Lane;

use super::connection::explain;
use super::error::IntakeError;
use super::mismatch::Mismatch;
use super::names::Names;
use super::options::AmqpOptions;

/// Declares everything on a channel of its own, which a refusal closes.
///
/// # Errors
/// [`IntakeError::Mismatch`] when a queue or exchange exists with other arguments, which is left
/// as it is; what was declared before it stays. Otherwise [`IntakeError::Declare`] or [`IntakeError::TimedOut`].
pub async fn declare(
    connection: &Connection,
    names: &Names,
    options: &AmqpOptions,
) -> Result<(), IntakeError> {
    let limit = options.connect_timeout;
    let channel = within(limit, "opening a channel", connection.create_channel()).await?;
    let declarer = Declarer {
        channel: &channel,
        names,
        limit,
    };
    declarer.front_door().await?;
    for lane in Lane::ALL {
        declarer
            .way_back(lane, Route::Shed, options.shed_delay)
            .await?;
        let park_delay = options.park_delay(lane);
        declarer.way_back(lane, Route::Park, park_delay).await?;
    }
    declarer.admitted().await?;
    declarer.plain_queue(names.dead()).await?;
    declarer
        .exchange(names.outcomes(), ExchangeKind::Topic, None)
        .await?;
    // The channel has done its work; nobody waits for its end.
    drop(timeout(limit, channel.close(200, "declared".into())).await);
    Ok(())
}

struct Declarer<'a> {
    channel: &'a Channel,
    names: &'a Names,
    limit: Duration,
}

impl Declarer<'_> {
    /// From the publishers to the lanes' queues.
    async fn front_door(&self) -> Result<(), IntakeError> {
        let names = self.names;
        self.exchange(names.unrouted(), ExchangeKind::Fanout, None)
            .await?;
        let shared = self.exchange(names.shared(), ExchangeKind::Topic, Some(names.unrouted()));
        shared.await?;
        let send = self.exchange(names.send(), ExchangeKind::Topic, Some(names.shared()));
        send.await?;
        for lane in Lane::ALL {
            self.plain_queue(names.lane(lane)).await?;
            let key = format!("{lane}.#");
            self.bind(names.lane(lane), names.shared(), &key).await?;
        }
        let default_lane = names.lane(Lane::Transactional);
        self.bind(default_lane, names.unrouted(), "").await
    }

    /// The exchange to send a job back to, and the queue in which it waits.
    async fn way_back(&self, lane: Lane, route: Route, delay: Duration) -> Result<(), IntakeError> {
        let exchange = self.names.way_back(lane, route);
        let queue = self.names.waiting(lane, route);
        self.exchange(exchange.clone(), ExchangeKind::Fanout, None)
            .await?;
        let arguments = waiting_arguments(self.names, delay);
        self.queue(queue.clone(), arguments).await?;
        self.bind(queue, exchange, "").await
    }

    /// What API servers have admitted.
    async fn admitted(&self) -> Result<(), IntakeError> {
        let exchange = self.names.admitted();
        self.exchange(exchange.clone(), ExchangeKind::Topic, None)
            .await?;
        for lane in Lane::ALL {
            let queue = self.names.lane_admitted(lane);
            self.plain_queue(queue.clone()).await?;
            self.bind(queue, exchange.clone(), &format!("{lane}.#"))
                .await?;
        }
        Ok(())
    }

    async fn exchange(
        &self,
        name: ShortString,
        kind: ExchangeKind,
        alternate: Option<ShortString>,
    ) -> Result<(), IntakeError> {
        let mut arguments = FieldTable::default();
        if let Some(alternate) = alternate {
            arguments.insert("alternate-exchange".into(), text(alternate.as_str()));
        }
        let options = ExchangeDeclareOptions {
            durable: true,
            ..ExchangeDeclareOptions::default()
        };
        let what = format!("declaring the exchange {name}");
        let declared = self
            .channel
            .exchange_declare(name, kind, options, arguments);
        within(self.limit, &what, declared).await
    }

    async fn plain_queue(&self, name: ShortString) -> Result<(), IntakeError> {
        self.queue(name, quorum()).await
    }

    async fn queue(&self, name: ShortString, arguments: FieldTable) -> Result<(), IntakeError> {
        let options = QueueDeclareOptions {
            durable: true,
            ..QueueDeclareOptions::default()
        };
        let what = format!("declaring the queue {name}");
        let declared = self.channel.queue_declare(name, options, arguments);
        within(self.limit, &what, declared).await.map(drop)
    }

    async fn bind(
        &self,
        queue: ShortString,
        exchange: ShortString,
        key: &str,
    ) -> Result<(), IntakeError> {
        let what = format!("binding {queue} to {exchange}");
        let options = QueueBindOptions::default();
        let key = ShortString::from(key);
        let bound = self
            .channel
            .queue_bind(queue, exchange, key, options, FieldTable::default());
        within(self.limit, &what, bound).await
    }
}

fn text(value: &str) -> AMQPValue {
    AMQPValue::LongString(value.into())
}

/// Every queue and its arguments, in the order in which a worker declares them.
#[must_use]
pub fn queues(names: &Names, options: &AmqpOptions) -> Vec<(ShortString, FieldTable)> {
    let plain = |name| (name, quorum());
    let waiting =
        |lane, route, delay| (names.waiting(lane, route), waiting_arguments(names, delay));
    let mut queues: Vec<_> = Lane::ALL.map(|lane| plain(names.lane(lane))).into();
    for lane in Lane::ALL {
        queues.push(waiting(lane, Route::Shed, options.shed_delay));
        queues.push(waiting(lane, Route::Park, options.park_delay(lane)));
    }
    queues.extend(Lane::ALL.map(|lane| plain(names.lane_admitted(lane))));
    queues.push(plain(names.dead()));
    queues
}

/// The arguments of a queue in which jobs wait so long before they go back to the publishers'
/// exchange.
fn waiting_arguments(names: &Names, delay: Duration) -> FieldTable {
    let mut arguments = quorum();
    let millis = u32::try_from(delay.as_millis()).unwrap_or(u32::MAX);
    let ttl = AMQPValue::LongLongInt(millis.into());
    arguments.insert("x-message-ttl".into(), ttl);
    let target = text(names.send().as_str());
    arguments.insert("x-dead-letter-exchange".into(), target);
    arguments.insert("x-dead-letter-strategy".into(), text("at-least-once"));
    // At-least-once dead-lettering asks for it; there is no limit to overflow.
    arguments.insert("x-overflow".into(), text("reject-publish"));
    arguments
}

pub(super) fn quorum() -> FieldTable {
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), text("quorum"));
    arguments
}

/// Waits for the broker's answer to one step; `what` says in an error what it was.
pub(super) async fn within<T>(
    limit: Duration,
    what: &str,
    answer: impl Future<Output = lapin::Result<T>>,
) -> Result<T, IntakeError> {
    let answered = timeout(limit, answer).await;
    answered
        .map_err(|_| IntakeError::TimedOut {
            what: what.to_owned(),
            limit,
        })?
        .map_err(|error| {
            let reason = explain(&error);
            match Mismatch::read(&reason) {
                Some(mismatch) => mismatch.into(),
                None => IntakeError::Declare {
                    what: what.to_owned(),
                    reason,
                },
            }
        })
}
