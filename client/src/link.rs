//! One connection to publish on.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lapin::options::ConfirmSelectOptions;
use lapin::{Channel, Connection, ConnectionProperties, ErrorKind};
use tokio::time::{sleep, timeout};

use crate::wire::{Endpoint, explain};
use crate::{ConnectError, Options};

/// After how long without a heartbeat the broker begins to be suspect.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// How often a broker that takes no publishes is asked whether it does again.
const LOOK: Duration = Duration::from_millis(50);

/// One connection, and its channels that nothing uses at the moment.
pub(crate) struct Link {
    connection: Connection,
    /// In confirm mode, with nothing outstanding.
    idle: Mutex<Vec<Channel>>,
}

impl Link {
    /// Connects, within the time that the options allow. lapin's own recovery stays off: after a
    /// connection breaks under load it can hang; the next publish connects anew instead.
    pub(crate) async fn connect(
        endpoint: &Endpoint,
        options: &Options,
    ) -> Result<Self, ConnectError> {
        let limit = options.connect_timeout;
        let name = options.name.as_str().into();
        let properties = ConnectionProperties::default().with_connection_name(name);
        let connecting = Connection::connect_uri(endpoint.uri(HEARTBEAT), properties);
        let connected = timeout(limit, connecting).await;
        let connection = connected
            .map_err(|_| ConnectError::TimedOut {
                address: endpoint.address(),
                limit,
            })?
            .map_err(|error| refusal(endpoint, &error))?;
        Ok(Self {
            connection,
            idle: Mutex::default(),
        })
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.connection.status().connected()
    }

    /// Whether the broker has said that it takes no publishes for now, as it does under an alarm.
    pub(crate) fn is_blocked(&self) -> bool {
        self.connection.status().blocked()
    }

    /// Waits while the broker takes no publishes: what is handed over meanwhile would be published
    /// later, without anybody to wait for it.
    pub(crate) async fn unblocked(&self) {
        while self.is_blocked() && self.is_connected() {
            sleep(LOOK).await;
        }
    }

    /// A channel in confirm mode that nobody else uses.
    pub(crate) async fn channel(&self) -> lapin::Result<Channel> {
        if let Some(channel) = self.take_idle() {
            return Ok(channel);
        }
        let channel = self.connection.create_channel().await?;
        let options = ConfirmSelectOptions::default();
        channel.confirm_select(options).await?;
        Ok(channel)
    }

    fn take_idle(&self) -> Option<Channel> {
        let mut idle = self.idle();
        idle.retain(|channel| channel.status().connected());
        idle.pop()
    }

    /// Takes back a channel with nothing outstanding.
    pub(crate) fn put_back(&self, channel: Channel) {
        self.idle().push(channel);
    }

    /// Nothing panics while it holds this lock, and what it guards would still be whole.
    fn idle(&self) -> MutexGuard<'_, Vec<Channel>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes leave of the broker, for at most `limit`. One that reads nothing for now, or is
    /// frozen, is left without.
    pub(crate) async fn close(&self, limit: Duration) {
        if self.is_connected() && !self.is_blocked() {
            let farewell = self.connection.close(200, "goodbye".into());
            drop(timeout(limit, farewell).await);
        }
    }
}

fn refusal(endpoint: &Endpoint, error: &lapin::Error) -> ConnectError {
    let (address, reason) = (endpoint.address(), explain(error));
    match error.kind() {
        ErrorKind::ProtocolError(_) => ConnectError::Denied { address, reason },
        _ => ConnectError::Unreachable { address, reason },
    }
}
