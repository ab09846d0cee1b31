//! Keeps the consuming connection alive, for ever.
//!
//! Whatever is lost (the connection, a channel, a consumer that the broker cancelled, a queue that
//! somebody deleted) is rebuilt from the topology upwards, after a pause that grows with each
//! failure. Trouble in one lane leaves the other lane's channel alone.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use lapin::Connection;
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::{Instant, sleep, timeout};

use crate::backoff::Retry;

use super::connection::{self, Purpose};
use super::consumer::Consumers;
use super::endpoint::Endpoint;
use super::error::{IntakeError, Verdict};
use super::hot::{HotConsumption, Wire};
use super::hot_consumers::HotConsumers;
use super::source::Source;
use super::topology;

/// What lasted this long has worked: the next pause is a short one again.
const LASTING: Duration = Duration::from_secs(10);

/// How often everything is declared again without being asked for: an exchange that somebody has
/// deleted is missed by publishers and by the delay queues, and by nobody here.
const REDECLARE_EVERY: Duration = Duration::from_secs(15);

/// The least time between two declarations that the publishing side asks for.
const REDECLARE_GAP: Duration = Duration::from_secs(1);

/// How long the broker may take over closing a connection.
pub(super) const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// The consuming side's life.
pub(super) struct Supervisor {
    pub(super) consumers: Consumers,
    pub(super) endpoint: Endpoint,
    /// Rung by the publishing side when an exchange or binding seems to be missing.
    pub(super) redeclare: Arc<Notify>,
    /// Accounts' own queues that are to be consumed from.
    pub(super) wanted: watch::Receiver<Arc<[HotConsumption]>>,
    /// The present connection, for what else is done over it.
    pub(super) wire: watch::Sender<Option<Wire>>,
}

impl Supervisor {
    /// Runs until stopped, or until the first start fails in a way that only a human can mend,
    /// which `gave_up` is then told.
    pub(super) async fn run(self, gave_up: oneshot::Sender<IntakeError>) {
        let mut retry = Retry::capped(self.consumers.options.longest_pause);
        let mut has_worked = false;
        while !self.is_stopping() {
            let opened = tokio::select! {
                () = self.consumers.stop.cancelled() => return,
                opened = self.open() => opened,
            };
            match opened {
                Ok(connection) => {
                    has_worked = true;
                    let since = Instant::now();
                    let connection = Arc::new(connection);
                    self.wire.send_replace(Some(Wire {
                        connection: Arc::clone(&connection),
                        since,
                    }));
                    self.serve(&connection).await;
                    self.wire.send_replace(None);
                    if since.elapsed() >= LASTING {
                        retry.reset();
                    }
                }
                Err(error) if !has_worked && error.verdict() == Verdict::GiveUp => {
                    // Nobody may be waiting for it.
                    drop(gave_up.send(error));
                    return;
                }
                Err(error) => self.report(&error),
            }
            self.pause(&mut retry).await;
        }
    }

    async fn open(&self) -> Result<Connection, IntakeError> {
        let options = &self.consumers.options;
        let connection = connection::connect(&self.endpoint, options, Purpose::Consume).await?;
        topology::declare(&connection, &self.consumers.names, options).await?;
        tracing::info!(broker = ?self.endpoint, "connected to consume");
        Ok(connection)
    }

    /// Consumes from every source until the connection is lost or the end comes.
    async fn serve(&self, connection: &Connection) {
        let mut consuming: FuturesUnordered<_> = Source::FIXED
            .iter()
            .map(|source| self.keep_consuming(connection, source))
            .collect();
        let mut hot = HotConsumers::new(self, connection);
        let mut wanted = self.wanted.clone();
        let mut taking = self.consumers.taking.clone();
        let every_source = async {
            loop {
                tokio::select! {
                    next = consuming.next() => if next.is_none() { break },
                    () = hot.next() => {}
                    Ok(()) = wanted.changed() => {}
                    Ok(()) = taking.changed() => {}
                }
                hot.follow(&wanted.borrow_and_update(), *taking.borrow_and_update());
            }
            // Those that are left are settled from like the others.
            hot.finish().await;
        };
        tokio::select! {
            () = every_source => {}
            () = self.redeclare_when_asked(connection) => {}
        }
        connection::close(connection, CLOSE_LIMIT).await;
    }

    /// Consumes from one source, with new channels as they are needed, as long as there is a
    /// connection.
    async fn keep_consuming(&self, connection: &Connection, source: &Source) {
        let mut retry = Retry::capped(self.consumers.options.longest_pause);
        loop {
            let since = Instant::now();
            let Err(error) = self.consumers.consume(connection, source).await else {
                return;
            };
            if self.is_stopping() {
                return;
            }
            self.report(&error);
            if since.elapsed() >= LASTING {
                retry.reset();
            }
            if connection.status().connected() {
                self.pause(&mut retry).await;
            }
            if !connection.status().connected() || self.is_stopping() {
                return;
            }
            // The queue may have been deleted.
            self.redeclare(connection).await;
        }
    }

    async fn redeclare_when_asked(&self, connection: &Connection) {
        loop {
            let asked = timeout(REDECLARE_EVERY, self.redeclare.notified())
                .await
                .is_ok();
            self.redeclare(connection).await;
            if asked {
                tracing::info!("declared all exchanges and queues again");
            }
            sleep(REDECLARE_GAP).await;
        }
    }

    async fn redeclare(&self, connection: &Connection) {
        let consumers = &self.consumers;
        let declared = topology::declare(connection, &consumers.names, &consumers.options).await;
        if let Err(error) = declared {
            self.report(&error);
        }
    }

    fn report(&self, error: &IntakeError) {
        tracing::warn!(%error, "consuming is disturbed; trying again");
        self.consumers.status.failed(error.to_string());
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.consumers.stop.is_cancelled() || self.consumers.close.is_cancelled()
    }

    async fn pause(&self, retry: &mut Retry) {
        tokio::select! {
            () = sleep(retry.next_pause()) => {}
            () = self.consumers.stop.cancelled() => {}
        }
    }
}
