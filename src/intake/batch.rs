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
use lapin::{Channel, Confirmation, ErrorKind};
use tokio::time::{Instant, timeout_at};

use crate::dispatch::ports::PublishError;

use super::connection::explain;
use super::outgoing::Outgoing;

/// The broker's code for "there is no such exchange".
const NOT_FOUND: u16 = 404;

type Pending = FuturesUnordered<Pin<Box<dyn Future<Output = (usize, Confirmed)> + Send>>>;
type Confirmed = lapin::Result<Confirmation>;

/// What became of a batch.
pub(super) struct Judged {
    /// One result per message, in order.
    pub(super) results: Vec<Result<(), PublishError>>,
    /// Whether an exchange or a binding seems to be missing.
    pub(super) topology_is_missing: bool,
}

/// Publishes and confirms that were still under way at their batch's deadline. They may yet be
/// carried out, so they are watched to their end rather than dropped.
pub(super) struct Late(Pending);

impl Late {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Waits for the broker's last word, or the end of the channel. Calls `settled` for each.
    pub(super) async fn watch(mut self, mut settled: impl FnMut()) {
        while self.0.next().await.is_some() {
            settled();
        }
    }
}

/// Publishes all messages at once and judges them when the last confirm is in, or at the deadline.
/// The confirms that did not come in time are given back.
pub(super) async fn publish(
    channel: &Channel,
    messages: Vec<Outgoing>,
    deadline: Instant,
) -> (Judged, Late) {
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

fn publish_one(
    channel: Channel,
    place: usize,
    message: Outgoing,
) -> Pin<Box<dyn Future<Output = (usize, Confirmed)> + Send>> {
    let options = BasicPublishOptions {
        mandatory: message.mandatory,
        immediate: false,
    };
    Box::pin(async move {
        let properties = message.properties();
        let Outgoing {
            exchange,
            key,
            body,
            ..
        } = message;
        let confirm = channel
            .basic_publish(exchange, key, options, body.as_bytes(), properties)
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
    fn of(message: &Outgoing) -> Self {
        Self {
            exchange: message.exchange.clone(),
            key: message.key.clone(),
            message_id: message.message_id.clone(),
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

fn judge(labels: &[Label], confirmed: Vec<Option<Confirmed>>) -> Judged {
    let mut returned = Vec::new();
    let mut topology_is_missing = false;
    let mut results: Vec<_> = confirmed
        .into_iter()
        .map(|confirm| match confirm {
            None => Err(PublishError::TimedOut),
            Some(Err(error)) => {
                topology_is_missing |= is_not_found(&error);
                Err(PublishError::Broken(explain(&error)))
            }
            Some(Ok(confirmation)) => {
                let result = match confirmation {
                    Confirmation::Nack(_) => Err(PublishError::Refused),
                    Confirmation::Ack(_) | Confirmation::NotRequested => Ok(()),
                };
                returned.extend(confirmation.take_message().map(|m| Label::of_returned(&m)));
                result
            }
        })
        .collect();
    topology_is_missing |= !returned.is_empty();
    for (label, result) in labels.iter().zip(&mut results) {
        if result.is_ok() && returned.contains(label) {
            let exchange = label.exchange.to_string();
            *result = Err(PublishError::Returned { exchange });
        }
    }
    Judged {
        results,
        topology_is_missing,
    }
}

fn is_not_found(error: &lapin::Error) -> bool {
    matches!(error.kind(), ErrorKind::ProtocolError(error) if error.get_id() == NOT_FOUND)
}
