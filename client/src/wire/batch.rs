//! One batch of confirmed publishes on a channel that nothing else uses meanwhile.
//!
//! lapin can attach a returned message to the confirm of another publish on the same channel. So
//! every batch has a channel to itself, and is judged as a whole, by what the returned messages
//! themselves say, when its confirms are in.

use std::pin::Pin;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use lapin::message::BasicReturnMessage;
use lapin::options::BasicPublishOptions;
use lapin::types::ShortString;
use lapin::{BasicProperties, Channel, Confirmation, ErrorKind};
use tokio::time::{Instant, timeout_at};

use super::explain;

type Pending = FuturesUnordered<Pin<Box<dyn Future<Output = (usize, Confirmed)> + Send>>>;
type Confirmed = lapin::Result<Confirmation>;

/// A message to publish.
pub struct Message<B> {
    /// The exchange; empty for the default one, whose keys are names of queues.
    pub exchange: ShortString,
    /// The routing key.
    pub key: ShortString,
    /// Whether the broker must say so when no queue is bound there.
    pub mandatory: bool,
    /// Everything else that the broker is told. A message id tells a return from others.
    pub properties: BasicProperties,
    /// The body.
    pub body: B,
}

/// Why a message is not known to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// No confirm by the deadline. It may yet be stored.
    TimedOut,
    /// The broker refused to store it.
    Refused,
    /// No queue is bound where it should go.
    Returned {
        /// The exchange that found none.
        exchange: String,
    },
    /// The channel or connection broke. It may have been stored.
    Broken {
        /// What happened.
        reason: String,
        /// The broker's code, where it closed the channel itself.
        code: Option<u16>,
    },
}

/// Publishes and confirms that were still under way at their batch's deadline. They may yet be
/// carried out, so they can be watched to their end.
pub struct Late(Pending);

impl Late {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Waits for the broker's last word, or the end of the channel. Calls `settled` for each.
    pub async fn watch(mut self, mut settled: impl FnMut()) {
        while self.0.next().await.is_some() {
            settled();
        }
    }
}

/// Publishes all messages at once and judges them when the last confirm is in, or at the deadline.
/// One result per message, in order, and the confirms that did not come in time. The channel must
/// be in confirm mode, with nothing outstanding.
pub async fn publish<B: AsRef<[u8]> + Send + Sync + 'static>(
    channel: &Channel,
    messages: Vec<Message<B>>,
    deadline: Instant,
) -> (Vec<Result<(), Failure>>, Late) {
    let labels: Vec<_> = messages.iter().map(Label::of).collect();
    let mut pending: Pending = messages
        .into_iter()
        .enumerate()
        .map(|(place, message)| publish_one(channel.clone(), place, message))
        .collect();
    let mut confirmed: Vec<Option<Confirmed>> = labels.iter().map(|_| None).collect();
    // Past the deadline, what is ready is still taken: a return may be attached to any confirm.
    while let Ok(Some((place, result))) = timeout_at(deadline, pending.next()).await {
        confirmed[place] = Some(result);
    }
    while let Some(Some((place, result))) = pending.next().now_or_never() {
        confirmed[place] = Some(result);
    }
    (judge(&labels, confirmed), Late(pending))
}

fn publish_one<B: AsRef<[u8]> + Send + Sync + 'static>(
    channel: Channel,
    place: usize,
    message: Message<B>,
) -> Pin<Box<dyn Future<Output = (usize, Confirmed)> + Send>> {
    let options = BasicPublishOptions {
        mandatory: message.mandatory,
        immediate: false,
    };
    Box::pin(async move {
        let Message {
            exchange,
            key,
            properties,
            body,
            ..
        } = message;
        let confirm = channel
            .basic_publish(exchange, key, options, body.as_ref(), properties)
            .await;
        drop(body);
        let result = match confirm {
            Ok(confirm) => confirm.await,
            Err(error) => Err(error),
        };
        (place, result)
    })
}

/// By what a returned message is recognised. Messages that share a label go the same way, so all
/// of them count as returned when one is: it is published again, at the worst.
#[derive(PartialEq, Eq)]
struct Label {
    exchange: ShortString,
    key: ShortString,
    message_id: Option<ShortString>,
}

impl Label {
    fn of<B>(message: &Message<B>) -> Self {
        Self {
            exchange: message.exchange.clone(),
            key: message.key.clone(),
            message_id: message.properties.message_id().clone(),
        }
    }

    fn of_returned(message: &BasicReturnMessage) -> Self {
        let delivery = &message.delivery;
        Self {
            exchange: delivery.exchange.clone(),
            key: delivery.routing_key.clone(),
            message_id: delivery.properties.message_id().clone(),
        }
    }
}

fn judge(labels: &[Label], confirmed: Vec<Option<Confirmed>>) -> Vec<Result<(), Failure>> {
    let mut returned = Vec::new();
    let mut results: Vec<_> = confirmed
        .into_iter()
        .map(|confirm| match confirm {
            None => Err(Failure::TimedOut),
            Some(Err(error)) => Err(broken(&error)),
            Some(Ok(confirmation)) => {
                let result = match confirmation {
                    Confirmation::Nack(_) => Err(Failure::Refused),
                    Confirmation::Ack(_) | Confirmation::NotRequested => Ok(()),
                };
                returned.extend(confirmation.take_message().map(|m| Label::of_returned(&m)));
                result
            }
        })
        .collect();
    for (label, result) in labels.iter().zip(&mut results) {
        if result.is_ok() && returned.contains(label) {
            let exchange = label.exchange.to_string();
            *result = Err(Failure::Returned { exchange });
        }
    }
    results
}

fn broken(error: &lapin::Error) -> Failure {
    let code = match error.kind() {
        ErrorKind::ProtocolError(error) => Some(error.get_id()),
        _ => None,
    };
    Failure::Broken {
        reason: explain(error),
        code,
    }
}
