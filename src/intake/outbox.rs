//! Where an API server puts the jobs that it has accepted: it publishes and consumes nothing.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::backoff::Retry;
use crate::dispatch::ports::{PublishError, Requeue};
use crate::domain::{Job, Lane};
use crate::telemetry::Telemetry;

use super::connection::{self, Purpose};
use super::endpoint::Endpoint;
use super::error::IntakeError;
use super::names::Names;
use super::options::AmqpOptions;
use super::outgoing::{Outgoing, Way};
use super::publisher::Publisher;
use super::status::Status;
use super::supervisor::CLOSE_LIMIT;
use super::topology;

/// A connection that publishes jobs, kept up in the background.
pub struct Outbox {
    names: Names,
    publisher: Arc<Publisher>,
    status: Arc<Status>,
    /// Whether the queues have been declared once, or are others' affair.
    declared: Arc<AtomicBool>,
    close: CancellationToken,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

impl Outbox {
    /// Starts connecting in the background, and returns at once: a broker that is down is waited
    /// for. Exchanges and queues are declared, should no worker have done so yet.
    ///
    /// # Errors
    /// When the URL or the prefix cannot be used.
    pub fn start(options: AmqpOptions, telemetry: Telemetry) -> Result<Self, IntakeError> {
        let names = Names::new(&options.prefix)?;
        let endpoint = Endpoint::parse(&options.url)?;
        let redeclare = Arc::new(Notify::new());
        let publisher = Arc::new(Publisher::new(
            options.clone(),
            Purpose::Api,
            telemetry,
            Arc::clone(&redeclare),
        ));
        let status = Arc::new(Status::default());
        let close = CancellationToken::new();
        let declared = Arc::new(AtomicBool::new(false));
        let declaring = Declaring {
            declared: Arc::clone(&declared),
            names: names.clone(),
            endpoint: endpoint.clone(),
            options,
            redeclare,
            status: Arc::clone(&status),
        };
        let publishing = (Arc::clone(&publisher), Arc::clone(&status), close.clone());
        let stopped = close.clone();
        let tasks = vec![
            tokio::spawn(async move {
                let (publisher, status, close) = publishing;
                publisher.run(&endpoint, &status, &close).await;
            }),
            tokio::spawn(async move {
                let declaring = Box::pin(declaring.run());
                stopped.run_until_cancelled(declaring).await;
            }),
        ];
        Ok(Self {
            names,
            publisher,
            status,
            declared,
            close,
            tasks: Mutex::new(tasks),
        })
    }

    /// Publishes new jobs as any publisher does, mandatory and confirmed. One result per job, in
    /// order.
    pub async fn queue(&self, jobs: &[Job]) -> Vec<Result<(), PublishError>> {
        let messages = jobs.iter().map(|job| Outgoing::job(&self.names, job));
        self.publisher.publish(messages.collect()).await
    }

    /// Publishes jobs, mandatory and confirmed. One result per job, in order.
    pub async fn publish(&self, jobs: Vec<Requeue>) -> Vec<Result<(), PublishError>> {
        let messages = jobs.into_iter();
        let messages = messages.map(|job| Outgoing::requeue(&self.names, job));
        self.publisher.publish(messages.collect()).await
    }

    /// Whether the broker would be handed what was admitted for a lane. The other lane's troubles
    /// are none of this one's.
    ///
    /// # Errors
    /// Why not: nothing published now would be stored, for certain.
    pub fn takes_admitted(&self, lane: Lane) -> Result<(), PublishError> {
        if !self.declared.load(Relaxed) {
            return Err(PublishError::NotTried);
        }
        self.publisher.takes(Way {
            exchange: self.names.admitted(),
            lane: Some(lane),
        })
    }

    /// Whether the broker takes publishes, and what went wrong last if it does not.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        let readiness = self.status.readiness();
        let unknown = || "not connected to the broker yet".to_owned();
        let ready = readiness.publishing && self.declared.load(Relaxed);
        (!ready).then(|| readiness.last_error.unwrap_or_else(unknown))
    }

    fn take_tasks(&self) -> Vec<JoinHandle<()>> {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *tasks)
    }

    /// Takes leave of the broker, by `deadline` at the latest.
    pub async fn close(&self, deadline: Instant) {
        self.close.cancel();
        for mut task in self.take_tasks() {
            if timeout_at(deadline, &mut task).await.is_err() {
                task.abort();
            }
        }
    }
}

/// Keeps the topology declared.
struct Declaring {
    names: Names,
    endpoint: Endpoint,
    options: AmqpOptions,
    declared: Arc<AtomicBool>,
    /// Rung when an exchange or binding seems to be missing.
    redeclare: Arc<Notify>,
    status: Arc<Status>,
}

impl Declaring {
    /// Declares at the start, and again whenever something is missing. A user that may publish but
    /// not declare leaves that to the workers.
    async fn run(self) {
        let mut retry = Retry::capped(self.options.longest_pause);
        loop {
            match self.declare().await {
                Ok(()) => {
                    self.declared.store(true, Relaxed);
                    retry.reset();
                    self.redeclare.notified().await;
                }
                Err(error) => {
                    if matches!(error, IntakeError::Declare { .. }) {
                        self.declared.store(true, Relaxed);
                    }
                    tracing::warn!(%error, "the queues cannot be declared; trying again");
                    self.status.failed(error.to_string());
                }
            }
            sleep(retry.next_pause()).await;
        }
    }

    async fn declare(&self) -> Result<(), IntakeError> {
        let connection = connection::connect(&self.endpoint, &self.options, Purpose::Api).await?;
        let declared = topology::declare(&connection, &self.names, &self.options).await;
        connection::close(&connection, CLOSE_LIMIT).await;
        declared
    }
}
