//! The connection that all tasks of a publisher share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::{Instant, timeout_at};

use crate::link::Link;
use crate::wire::Endpoint;
use crate::{ConnectError, Options};

/// At most one connection at a time, opened when it is needed.
#[derive(Default)]
pub(crate) struct SharedLink {
    /// Never held for longer than a moment, so that nothing waits for whoever connects.
    current: Mutex<Current>,
    /// Held while connecting.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Current {
    link: Option<Arc<Link>>,
    is_closed: bool,
}

impl SharedLink {
    /// The connection, opened anew if it is lost. Takes at most the time to connect, however many
    /// tasks ask.
    pub(crate) async fn get(
        &self,
        endpoint: &Endpoint,
        options: &Options,
    ) -> Result<Arc<Link>, ConnectError> {
        if let Some(link) = self.connected() {
            return Ok(link);
        }
        let limit = options.connect_timeout;
        let deadline = Instant::now() + limit;
        let turn = timeout_at(deadline, self.turn.lock()).await;
        let _turn = turn.map_err(|_| ConnectError::TimedOut {
            address: endpoint.address(),
            limit,
        })?;
        // Whoever had the turn before may have connected.
        if let Some(link) = self.connected() {
            return Ok(link);
        }
        let link = Arc::new(Link::connect(endpoint, options, deadline).await?);
        self.keep(&link);
        Ok(link)
    }

    fn connected(&self) -> Option<Arc<Link>> {
        let current = self.current();
        let link = current.link.as_ref().filter(|link| link.is_connected());
        link.map(Arc::clone)
    }

    /// A connection that came up only after the end is left to whoever asked for it.
    fn keep(&self, link: &Arc<Link>) {
        let mut current = self.current();
        if !current.is_closed {
            current.link = Some(Arc::clone(link));
        }
    }

    /// Uses a connection no more. It closes when the last batch on it has ended.
    pub(crate) fn retire(&self, link: &Arc<Link>) {
        let mut current = self.current();
        current.link.take_if(|current| Arc::ptr_eq(current, link));
    }

    /// Ends the sharing; gives the connection, to take leave of the broker on.
    pub(crate) fn end(&self) -> Option<Arc<Link>> {
        let mut current = self.current();
        current.is_closed = true;
        current.link.take()
    }

    /// Nothing panics while it holds this lock, and what it guards would still be whole.
    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
