//! Confirmed publishing on a connection of its own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lapin::options::ConfirmSelectOptions;
use lapin::{Channel, Connection};
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::backoff::Retry;
use crate::dispatch::ports::PublishError;
use crate::telemetry::Telemetry;

use super::batch::{self, Late};
use super::connection::{self, Purpose, explain};
use super::endpoint::Endpoint;
use super::options::AmqpOptions;
use super::outgoing::Outgoing;
use super::status::Status;
use super::supervisor::CLOSE_LIMIT;

/// The most batches under way at once; each has a channel to itself.
const CHANNELS: usize = 8;

/// How often the connection is looked at: lapin does not report every way in which one can end.
const LOOK: Duration = Duration::from_millis(200);

/// What lasted this long has worked: the next pause is a short one again.
const LASTING: Duration = Duration::from_secs(10);

/// Publishes batches and waits for their confirms.
pub struct Publisher {
    options: AmqpOptions,
    purpose: Purpose,
    telemetry: Telemetry,
    link: Mutex<Option<Arc<Link>>>,
    /// Rung when an exchange or binding seems to be missing.
    redeclare: Arc<Notify>,
}

/// One connection to publish on.
struct Link {
    connection: Connection,
    /// Channels in confirm mode with nothing outstanding.
    idle: Mutex<Vec<Channel>>,
    free: Semaphore,
    /// Publishes that were not confirmed in time and whose end is not known yet. While there are
    /// any, the broker is not taking messages, and more of them would only pile up.
    overdue: AtomicUsize,
}

impl Publisher {
    /// A publisher without a connection; [`Publisher::run`] gives it one.
    #[must_use]
    pub fn new(
        options: AmqpOptions,
        purpose: Purpose,
        telemetry: Telemetry,
        redeclare: Arc<Notify>,
    ) -> Self {
        Self {
            options,
            purpose,
            telemetry,
            link: Mutex::new(None),
            redeclare,
        }
    }

    /// Publishes messages, pipelined, and waits for their confirms until the deadline that the
    /// options set. One result per message, in order.
    pub async fn publish(&self, messages: Vec<Outgoing>) -> Vec<Result<(), PublishError>> {
        let count = messages.len();
        let results = match self.link() {
            None => vec![Err(PublishError::Disconnected); count],
            Some(link) => self.publish_on(&link, messages).await,
        };
        let failed = results.iter().filter(|result| result.is_err()).count();
        if failed > 0 {
            self.telemetry.publish_failed(failed as u64);
        }
        results
    }

    async fn publish_on(
        &self,
        link: &Arc<Link>,
        messages: Vec<Outgoing>,
    ) -> Vec<Result<(), PublishError>> {
        let count = messages.len();
        let deadline = Instant::now() + self.options.confirm_timeout;
        if link.overdue.load(Ordering::Relaxed) > 0 {
            return vec![Err(PublishError::TimedOut); count];
        }
        let Ok(Ok(_permit)) = timeout_at(deadline, link.free.acquire()).await else {
            return vec![Err(PublishError::TimedOut); count];
        };
        let channel = match link.channel(deadline).await {
            Ok(channel) => channel,
            Err(error) => return vec![Err(error); count],
        };
        let judged = batch::publish(&channel, messages, deadline).await;
        let failed = judged
            .results
            .iter()
            .filter_map(|result| result.as_ref().err());
        if let Some(error) = failed.clone().next() {
            tracing::warn!(%error, failed = failed.count(), of = count, "publishing failed; the originals are kept");
        }
        if judged.topology_is_missing {
            self.redeclare.notify_one();
        }
        if judged.late.len() == 0 {
            link.put_back(channel);
        } else {
            link.watch(judged.late, channel);
        }
        judged.results
    }

    fn link(&self) -> Option<Arc<Link>> {
        let link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        link.clone()
    }

    fn set_link(&self, link: Option<Arc<Link>>) {
        *self.link.lock().unwrap_or_else(PoisonError::into_inner) = link;
    }

    /// Keeps the connection alive until `close`. Whether the broker takes messages shows in
    /// `status`.
    pub(super) async fn run(
        &self,
        endpoint: &Endpoint,
        status: &Status,
        close: &CancellationToken,
    ) {
        let mut retry = Retry::capped(self.options.longest_pause);
        while !close.is_cancelled() {
            let connected = tokio::select! {
                () = close.cancelled() => return,
                connected = connection::connect(endpoint, &self.options, self.purpose) => connected,
            };
            match connected {
                Ok(connection) => {
                    let since = Instant::now();
                    self.serve(Arc::new(Link::new(connection)), status, close)
                        .await;
                    if since.elapsed() >= LASTING {
                        retry.reset();
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "there is no connection to publish on; trying again");
                    status.failed(error.to_string());
                }
            }
            tokio::select! {
                () = close.cancelled() => {}
                () = sleep(retry.next_pause()) => {}
            }
        }
    }

    async fn serve(&self, link: Arc<Link>, status: &Status, close: &CancellationToken) {
        tracing::info!("connected to publish");
        self.set_link(Some(Arc::clone(&link)));
        while link.connection.status().connected() && !close.is_cancelled() {
            status.publishing(link.overdue.load(Ordering::Relaxed) == 0);
            tokio::select! {
                () = close.cancelled() => {}
                () = sleep(LOOK) => {}
            }
        }
        status.publishing(false);
        self.set_link(None);
        if close.is_cancelled() {
            connection::close(&link.connection, CLOSE_LIMIT).await;
        } else {
            status.failed("the connection to publish on was lost".to_owned());
            tracing::warn!("the connection to publish on was lost");
        }
    }
}

impl Link {
    fn new(connection: Connection) -> Self {
        Self {
            connection,
            idle: Mutex::default(),
            free: Semaphore::new(CHANNELS),
            overdue: AtomicUsize::new(0),
        }
    }

    /// A channel in confirm mode that nobody else uses.
    async fn channel(self: &Arc<Self>, deadline: Instant) -> Result<Channel, PublishError> {
        if let Some(channel) = self.take_idle() {
            return Ok(channel);
        }
        if !self.connection.status().connected() {
            return Err(PublishError::Disconnected);
        }
        let link = Arc::clone(self);
        let mut opening = Box::pin(async move { link.open_channel().await });
        match timeout_at(deadline, &mut opening).await {
            Ok(Ok(channel)) => Ok(channel),
            Ok(Err(error)) => Err(PublishError::Broken(explain(&error))),
            Err(_) => {
                let link = Arc::clone(self);
                link.overdue.fetch_add(1, Ordering::Relaxed);
                // Watched to its end: as long as it hangs, so would the next one.
                tokio::spawn(async move {
                    if let Ok(channel) = opening.await {
                        link.put_back(channel);
                    }
                    link.overdue.fetch_sub(1, Ordering::Relaxed);
                });
                Err(PublishError::TimedOut)
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
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(channel) = idle.pop() {
            if channel.status().connected() {
                return Some(channel);
            }
        }
        None
    }

    fn put_back(&self, channel: Channel) {
        if channel.status().connected() {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            idle.push(channel);
        }
    }

    /// Watches overdue confirms to their end and only then lets the channel be used again.
    fn watch(self: &Arc<Self>, late: Late, channel: Channel) {
        let link = Arc::clone(self);
        let count = late.len();
        if link.overdue.fetch_add(count, Ordering::Relaxed) == 0 {
            tracing::warn!("the broker confirms nothing: publishing pauses until it does");
        }
        tokio::spawn(async move {
            let settled = || {
                link.overdue.fetch_sub(1, Ordering::Relaxed);
            };
            late.watch(settled).await;
            if link.overdue.load(Ordering::Relaxed) == 0 {
                tracing::info!("the broker has confirmed what was overdue: publishing goes on");
            }
            link.put_back(channel);
        });
    }
}
