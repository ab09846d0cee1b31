//! Publishing new jobs, for programs that are no workers.

use std::sync::Arc;

use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::dispatch::ports::PublishError;
use crate::domain::Job;
use crate::telemetry::Telemetry;

use super::connection::{self, Purpose};
use super::endpoint::Endpoint;
use super::error::IntakeError;
use super::names::Names;
use super::options::AmqpOptions;
use super::outgoing::Outgoing;
use super::publisher::Publisher;
use super::status::Status;
use super::supervisor::CLOSE_LIMIT;
use super::topology;

/// How often the first connection is looked for.
const LOOK: std::time::Duration = std::time::Duration::from_millis(10);

/// A way to publish new jobs, which connects again by itself.
pub struct Feed {
    names: Names,
    publisher: Arc<Publisher>,
    close: CancellationToken,
    task: JoinHandle<()>,
}

impl Feed {
    /// Connects and sees to it that the queues exist, so that jobs can be queued before the first
    /// worker has run. Where this user may not declare anything, whoever may will have.
    ///
    /// # Errors
    /// When there is no connection within the time that the options allow, or when the URL or the
    /// prefix cannot be used.
    pub async fn connect(options: AmqpOptions) -> Result<Self, IntakeError> {
        let names = Names::new(&options.prefix)?;
        let endpoint = Endpoint::parse(&options.url)?;
        let declaring = connection::connect(&endpoint, &options, Purpose::Enqueue).await?;
        if let Err(error) = topology::declare(&declaring, &names, &options).await {
            tracing::debug!(%error, "could not declare the queues; publishing all the same");
        }
        connection::close(&declaring, CLOSE_LIMIT).await;
        Self::open(options, Purpose::Enqueue).await
    }

    /// Connects to exchanges that are there already.
    ///
    /// # Errors
    /// As [`Feed::connect`].
    pub async fn open(options: AmqpOptions, purpose: Purpose) -> Result<Self, IntakeError> {
        let names = Names::new(&options.prefix)?;
        let endpoint = Endpoint::parse(&options.url)?;
        let limit = options.connect_timeout;
        let (telemetry, redeclare) = (Telemetry::unexported(), Arc::new(Notify::new()));
        let publisher = Publisher::new(options, purpose, telemetry, redeclare);
        let publisher = Arc::new(publisher);
        let status = Arc::new(Status::default());
        let close = CancellationToken::new();
        let (running, watched, closing) = (publisher.clone(), status.clone(), close.clone());
        let task = tokio::spawn(async move { running.run(&endpoint, &watched, &closing).await });
        let feed = Self {
            names,
            publisher,
            close,
            task,
        };
        let connected = timeout(limit, async {
            while !status.readiness().publishing {
                sleep(LOOK).await;
            }
        });
        match connected.await {
            Ok(()) => Ok(feed),
            Err(_) => Err(IntakeError::TimedOut {
                what: "connecting to publish".to_owned(),
                limit,
            }),
        }
    }

    /// Publishes jobs, mandatory and confirmed. One result per job, in order.
    pub async fn publish(&self, jobs: &[Job]) -> Vec<Result<(), PublishError>> {
        let messages = jobs.iter().map(|job| Outgoing::job(&self.names, job));
        self.send(messages.collect()).await
    }

    /// Publishes messages as they are, confirmed. One result per message, in order.
    pub async fn send(&self, messages: Vec<Outgoing>) -> Vec<Result<(), PublishError>> {
        self.publisher.publish(messages).await
    }

    /// Takes leave of the broker, by `deadline` at the latest.
    pub async fn close(mut self, deadline: Instant) {
        self.close.cancel();
        drop(timeout_at(deadline, &mut self.task).await);
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.task.abort();
    }
}
