//! Confirmed publishing on a connection of its own.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::backoff::Retry;
use crate::dispatch::ports::PublishError;
use crate::telemetry::Telemetry;

use super::connection::{self, Purpose};
use super::endpoint::Endpoint;
use super::link::Link;
use super::options::AmqpOptions;
use super::outgoing::{Outgoing, Way};
use super::parts::{self, Part};
use super::status::Status;
use super::supervisor::CLOSE_LIMIT;

/// A connection is given up when confirms are overdue for this many times the time they may take.
const PATIENCE: u32 = 2;

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

/// How a link came to its end.
enum End {
    /// This process wants to end.
    Closing,
    /// The connection is gone.
    Lost,
    /// Confirms have been overdue for too long.
    Silent,
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
    /// options set. One result per message, in order. What goes one way neither waits for another
    /// nor fails with it.
    pub async fn publish(&self, messages: Vec<Outgoing>) -> Vec<Result<(), PublishError>> {
        let count = messages.len();
        let results = match self.link() {
            None => vec![Err(PublishError::Disconnected); count],
            Some(link) => {
                let parts = parts::by_way(messages).into_iter();
                let publishing = parts.map(|part| self.publish_part(&link, part));
                parts::in_order(join_all(publishing).await)
            }
        };
        let failed = results.iter().filter(|result| result.is_err()).count();
        if failed > 0 {
            self.telemetry.publish_failed(failed as u64);
        }
        results
    }

    /// Whether what goes that way would be handed to the broker now.
    ///
    /// # Errors
    /// Why not, for certain.
    pub(super) fn takes(&self, way: Way) -> Result<(), PublishError> {
        let link = self.link().ok_or(PublishError::Disconnected)?;
        link.takes(way)
    }

    /// The results of one part, with their messages' places.
    async fn publish_part(
        &self,
        link: &Arc<Link>,
        part: Part,
    ) -> (Vec<usize>, Vec<Result<(), PublishError>>) {
        let count = part.places.len();
        let deadline = Instant::now() + self.options.confirm_timeout;
        let judged = link.publish(part.way.clone(), part.messages, deadline);
        let judged = match judged.await {
            Ok(judged) => judged,
            Err(error) => return (part.places, vec![Err(error); count]),
        };
        let failed = judged
            .results
            .iter()
            .filter_map(|result| result.as_ref().err());
        if let Some(error) = failed.clone().next() {
            tracing::warn!(%error, way = %part.way, failed = failed.count(), of = count, "publishing failed; the originals are kept");
        }
        if judged.topology_is_missing {
            self.redeclare.notify_one();
        }
        (part.places, judged.results)
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
        // One by which not all ways confirm any more: it serves the others until there is another.
        let mut worn: Option<Arc<Link>> = None;
        while !close.is_cancelled() {
            let connected = tokio::select! {
                () = close.cancelled() => break,
                connected = connection::connect(endpoint, &self.options, self.purpose) => connected,
            };
            match connected {
                Ok(connection) => {
                    let since = Instant::now();
                    let link = Arc::new(Link::new(connection));
                    self.set_link(Some(Arc::clone(&link)));
                    if let Some(worn) = worn.take() {
                        self.retire(worn, close.clone());
                    }
                    worn = self.serve(link, status, close).await;
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
        self.set_link(None);
        if let Some(worn) = worn {
            worn.close(CLOSE_LIMIT).await;
        }
    }

    /// Serves by a link to its end; gives it back where it may go on for some ways.
    async fn serve(
        &self,
        link: Arc<Link>,
        status: &Status,
        close: &CancellationToken,
    ) -> Option<Arc<Link>> {
        tracing::info!("connected to publish");
        let end = self.look_after(&link, status, close).await;
        status.publishing(false);
        match end {
            End::Closing => {
                self.set_link(None);
                link.close(CLOSE_LIMIT).await;
                None
            }
            End::Lost => {
                self.set_link(None);
                status.failed("the connection to publish on was lost".to_owned());
                tracing::warn!("the connection to publish on was lost");
                None
            }
            End::Silent => {
                status.failed("the broker does not confirm what is published".to_owned());
                tracing::warn!(
                    "confirms are long overdue: publishing goes on over another connection"
                );
                Some(link)
            }
        }
    }

    /// Watches a link to its end. Time under an alarm does not count as silence: the broker has
    /// said that it confirms nothing, and another connection would be no better off.
    async fn look_after(&self, link: &Link, status: &Status, close: &CancellationToken) -> End {
        let patience = self.options.confirm_timeout * PATIENCE;
        let mut blocked_at: Option<Instant> = None;
        let mut was_blocked = false;
        loop {
            if close.is_cancelled() {
                return End::Closing;
            }
            if !link.is_connected() {
                return End::Lost;
            }
            let (is_blocked, overdue) = (link.is_blocked(), link.overdue_since());
            if is_blocked {
                blocked_at = Some(Instant::now());
            }
            if is_blocked != was_blocked {
                report_blocked(is_blocked, status);
                was_blocked = is_blocked;
            }
            status.publishing(!is_blocked && overdue.is_none());
            let silent = overdue.max(blocked_at).filter(|_| overdue.is_some());
            if silent.is_some_and(|since| since.elapsed() > patience) {
                return End::Silent;
            }
            tokio::select! {
                () = close.cancelled() => {}
                () = sleep(LOOK) => {}
            }
        }
    }

    /// Closes a link that is used no more when all that was begun on it has met its deadline.
    fn retire(&self, link: Arc<Link>, close: CancellationToken) {
        let rest = self.options.confirm_timeout;
        tokio::spawn(async move {
            tokio::select! {
                () = close.cancelled() => {}
                () = sleep(rest) => {}
            }
            link.close(CLOSE_LIMIT).await;
        });
    }
}

fn report_blocked(blocked: bool, status: &Status) {
    if blocked {
        status.failed("the broker takes no publishes: an alarm is on".to_owned());
        tracing::warn!(
            "the broker takes no publishes, as under a memory or disk alarm: nothing is published until it does"
        );
    } else {
        tracing::info!("the broker takes publishes again");
    }
}
