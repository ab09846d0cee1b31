//! The AMQP side: topology, consuming, decoding, settling, publishing, reconnecting.
//!
//! Two connections. One declares, consumes and acknowledges; the other publishes, because a broker
//! under an alarm stops reading every connection that has ever published, acknowledgements
//! included. Both are rebuilt for ever; what was delivered on a channel that is gone is forgotten
//! here and delivered again by the broker.

mod acks;
mod batch;
mod broker;
pub mod connection;
mod consumer;
pub mod dead;
pub mod decode;
pub mod endpoint;
mod error;
mod feed;
mod hot;
mod hot_consumers;
mod link;
mod mismatch;
mod names;
mod options;
mod outbox;
mod outgoing;
mod parts;
pub(crate) mod passive;
mod probe;
mod publisher;
mod settle;
mod source;
mod status;
mod supervisor;
pub mod topology;

use std::sync::Arc;

use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

pub use acks::{Ack, TagTracker};
pub use broker::AmqpBroker;
pub use connection::Purpose;
pub use endpoint::Endpoint;
pub use error::{IntakeError, Verdict};
pub use feed::Feed;
pub use hot::{HotBroker, HotConsumption, HotError, HotLook, HotSession};
pub use mismatch::Mismatch;
pub use names::Names;
pub use options::AmqpOptions;
pub use outbox::Outbox;
pub use outgoing::{Body, Outgoing};
pub use publisher::Publisher;
pub use source::Source;
pub use status::Readiness;

use crate::dispatch::ports::Delivery;
use crate::telemetry::Telemetry;

use consumer::Consumers;
use settle::Settle;
use status::Status;
use supervisor::Supervisor;

/// The running AMQP side of a worker.
pub struct Intake {
    broker: AmqpBroker,
    hot: HotBroker,
    stop: CancellationToken,
    close: CancellationToken,
    gave_up: Option<oneshot::Receiver<IntakeError>>,
    tasks: Vec<JoinHandle<()>>,
    settling: JoinHandle<()>,
}

impl Intake {
    /// Starts connecting, consuming and settling in the background, and returns at once: a broker
    /// that is down is waited for. `deliveries` gets every message read, in batches. Cancelling
    /// `stop` cancels the consumers: what has been handed on can still be settled, and the rest
    /// returns to its queue with the end of the channels.
    ///
    /// # Errors
    /// When the URL or the prefix cannot be used.
    pub fn start(
        options: AmqpOptions,
        telemetry: Telemetry,
        deliveries: mpsc::UnboundedSender<Vec<Delivery>>,
        stop: CancellationToken,
    ) -> Result<Self, IntakeError> {
        let names = Names::new(&options.prefix)?;
        let endpoint = Endpoint::parse(&options.url)?;
        let redeclare = Arc::new(Notify::new());
        let (settle, inbox) = mpsc::unbounded_channel();
        let publisher = Publisher::new(
            options.clone(),
            Purpose::Publish,
            telemetry.clone(),
            Arc::clone(&redeclare),
        );
        let (taking, watched) = watch::channel([true; 2]);
        let broker = AmqpBroker {
            names: names.clone(),
            publisher: Arc::new(publisher),
            settle,
            status: Arc::new(Status::default()),
            taking,
        };
        let (wire, wired) = watch::channel(None);
        let (wanted, hot_wanted) = watch::channel(Arc::default());
        let hot = HotBroker {
            names: names.clone(),
            options: options.clone(),
            publisher: Arc::clone(&broker.publisher),
            wire: wired,
            wanted,
        };
        let close = CancellationToken::new();
        let consumers = Consumers {
            names,
            options,
            telemetry,
            status: Arc::clone(&broker.status),
            deliveries,
            settle: broker.settle.clone(),
            taking: watched,
            stop: stop.clone(),
            close: close.clone(),
        };
        let supervisor = Supervisor {
            consumers,
            endpoint: endpoint.clone(),
            redeclare,
            wanted: hot_wanted,
            wire,
        };
        let (gave_up_sender, gave_up) = oneshot::channel();
        let tasks = vec![
            tokio::spawn(supervisor.run(gave_up_sender)),
            tokio::spawn(keep_publishing(broker.clone(), endpoint, close.clone())),
        ];
        Ok(Self {
            broker,
            hot,
            stop,
            close,
            gave_up: Some(gave_up),
            tasks,
            settling: tokio::spawn(settle::run(inbox)),
        })
    }

    /// The broker, for the pipeline.
    #[must_use]
    pub fn broker(&self) -> AmqpBroker {
        self.broker.clone()
    }

    /// What looks after accounts' own queues.
    #[must_use]
    pub fn hot(&self) -> HotBroker {
        self.hot.clone()
    }

    /// Waits for the first start to fail in a way that only a human can mend: a queue with other
    /// arguments, a broker that is too old. Otherwise it waits for ever.
    pub async fn gave_up(&mut self) -> IntakeError {
        if let Some(gave_up) = &mut self.gave_up {
            let error = gave_up.await;
            self.gave_up = None;
            if let Ok(error) = error {
                return error;
            }
        }
        std::future::pending().await
    }

    /// Sends the acknowledgements that are due and takes leave of the broker. Ends by `deadline`,
    /// also when the broker is frozen or reads nothing.
    pub async fn close(self, deadline: Instant) {
        self.stop.cancel();
        let (answer, flushed) = oneshot::channel();
        if self.broker.settle.send(Settle::Flush(answer)).is_ok() {
            drop(timeout_at(deadline, flushed).await);
        }
        self.close.cancel();
        for mut task in self.tasks {
            if timeout_at(deadline, &mut task).await.is_err() {
                task.abort();
            }
        }
        // It would wait for more receipts as long as anybody holds the broker.
        self.settling.abort();
    }
}

async fn keep_publishing(broker: AmqpBroker, endpoint: Endpoint, close: CancellationToken) {
    let publisher = Arc::clone(&broker.publisher);
    publisher.run(&endpoint, &broker.status, &close).await;
}
