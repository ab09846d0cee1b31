//! Opens connections to the broker.

use std::time::Duration;

use lapin::{Connection, ConnectionProperties};
use tokio::time::timeout;

pub use lanekeeper_client::wire::explain;

use super::endpoint::Endpoint;
use super::error::IntakeError;
use super::options::AmqpOptions;
use super::probe;

/// A connection that is only used for one thing: the broker stops reading, under an alarm, every
/// connection that has ever published, acknowledgements included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Declares, consumes and settles; never publishes.
    Consume,
    /// Publishes; never consumes.
    Publish,
    /// Publishes new jobs, in a program that is no worker.
    Enqueue,
    /// Publishes what an API server has accepted, and declares the queues for it.
    Api,
    /// Asks how long queues are.
    Watch,
    /// Looks into the dead queue, or publishes what was in it; each over a connection of its own.
    Dead,
}

impl Purpose {
    /// The connection's name in the broker's lists.
    fn connection_name(self, host: &str) -> String {
        match self {
            Self::Consume => format!("lanekeeper worker {host} consume"),
            Self::Publish => format!("lanekeeper worker {host} publish"),
            Self::Enqueue => format!("lanekeeper enqueue {host}"),
            Self::Api => format!("lanekeeper api {host}"),
            Self::Watch => format!("lanekeeper lanes {host}"),
            Self::Dead => format!("lanekeeper dead {host}"),
        }
    }
}

/// Connects, within the time that the options allow. lapin's own recovery stays off: after a
/// connection breaks under load it can hang, and it never recovers a channel that the broker
/// closed; this module's users rebuild whatever they lose.
///
/// # Errors
/// When nobody answers in time, the log-in is refused, or the broker is too old.
pub async fn connect(
    endpoint: &Endpoint,
    options: &AmqpOptions,
    purpose: Purpose,
) -> Result<Connection, IntakeError> {
    let uri = endpoint.uri(options.heartbeat);
    let limit = options.connect_timeout;
    let name = purpose.connection_name(&options.host_name);
    probe::check(endpoint, &uri, limit).await?;
    let properties = ConnectionProperties::default().with_connection_name(name.into());
    let connected = timeout(limit, Connection::connect_uri(uri, properties)).await;
    connected
        .map_err(|_| IntakeError::TimedOut {
            what: format!("connecting to the broker at {}", endpoint.address()),
            limit,
        })?
        .map_err(|error| IntakeError::Connect {
            address: endpoint.address(),
            reason: explain(&error),
        })
}

/// Closes a connection, for at most `limit`. One that cannot be closed in time, because the broker
/// is frozen or reads no more, is left to its heartbeat or to the end of the process.
pub(super) async fn close(connection: &Connection, limit: Duration) {
    if !connection.status().connected() {
        return;
    }
    match timeout(limit, connection.close(200, "goodbye".into())).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            tracing::debug!(error = %explain(&error), "a connection was gone already");
        }
        Err(_) => tracing::warn!("the broker did not take leave in time; leaving without it"),
    }
}
