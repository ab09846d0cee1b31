//! One connection to publish on.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lapin::options::ConfirmSelectOptions;
use lapin::protocol::AMQPError;
use lapin::{Channel, Connection, ConnectionProperties, ErrorKind};
use tokio::time::{Instant, sleep, timeout, timeout_at};

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
    /// Connects by the deadline, which is the time-out of the options from some instant on. lapin's
    /// own recovery stays off: after a connection breaks under load it can hang; the next publish
    /// connects anew instead.
    pub(crate) async fn connect(
        endpoint: &Endpoint,
        options: &Options,
        deadline: Instant,
    ) -> Result<Self, ConnectError> {
        let limit = options.connect_timeout;
        let name = options.name.as_str().into();
        let properties = ConnectionProperties::default().with_connection_name(name);
        let connecting = Connection::connect_uri(endpoint.uri(HEARTBEAT), properties);
        let connected = timeout_at(deadline, connecting).await;
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

/// The broker's code for a wrong user name or password.
const ACCESS_REFUSED: u16 = 403;
/// The broker's code for what it does not allow: for good, or because a limit is reached.
const NOT_ALLOWED: u16 = 530;

fn refusal(endpoint: &Endpoint, error: &lapin::Error) -> ConnectError {
    let (address, reason) = (endpoint.address(), explain(error));
    match error.kind() {
        ErrorKind::ProtocolError(error) if is_denial(error) => {
            ConnectError::Denied { address, reason }
        }
        _ => ConnectError::Unreachable { address, reason },
    }
}

/// Whether the broker will say the same until somebody puts something right. What else it says
/// while one connects passes by itself, as when its node starts or stops.
fn is_denial(error: &AMQPError) -> bool {
    let text = error.get_message().as_str();
    match error.get_id() {
        ACCESS_REFUSED => true,
        // The text for a full virtual host begins as that for a forbidden one.
        NOT_ALLOWED if text.ends_with("is reached") => false,
        NOT_ALLOWED => text.ends_with(" not found") || text.contains(" refused for user "),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    fn refused(code: u16, text: &str) -> ConnectError {
        let endpoint = Endpoint::parse("amqp://u:p@broker/lanes").unwrap();
        let error = AMQPError::from_id(code, text.into()).unwrap();
        refusal(&endpoint, &ErrorKind::ProtocolError(error).into())
    }

    #[test]
    fn a_refused_log_in_and_a_virtual_host_that_is_forbidden_or_missing_are_final() {
        for (code, text) in [
            (
                403,
                "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. For \
                 details see the broker logfile.",
            ),
            (530, "NOT_ALLOWED - vhost lanes not found"),
            (
                530,
                "NOT_ALLOWED - access to vhost 'lanes' refused for user 'u'",
            ),
            (
                530,
                "NOT_ALLOWED - access to vhost 'lanes' refused for user 'u' by backend \
                 rabbit_auth_backend_http: denied",
            ),
        ] {
            let error = refused(code, text);
            assert!(matches!(error, ConnectError::Denied { .. }), "{error:?}");
            assert_eq!(error.verdict(), Verdict::DoNotRetry);
        }
    }

    #[test]
    fn what_a_broker_says_that_starts_stops_or_is_full_passes() {
        for (code, text) in [
            (
                320,
                "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'",
            ),
            (
                530,
                "NOT_ALLOWED - access to vhost 'lanes' refused for user 'u': connection limit \
                 (100) is reached",
            ),
            (
                530,
                "NOT_ALLOWED - connection refused for user 'u': user connection limit (5) is \
                 reached",
            ),
            (
                530,
                "NOT_ALLOWED - connection refused: node connection limit (9) is reached",
            ),
            (
                541,
                "INTERNAL_ERROR - access to vhost 'lanes' refused for user 'u': vhost 'lanes' is \
                 down",
            ),
            (506, "RESOURCE_ERROR - out of memory"),
            (501, "FRAME_ERROR"),
        ] {
            let error = refused(code, text);
            assert!(
                matches!(error, ConnectError::Unreachable { .. }),
                "{error:?}"
            );
            assert_eq!(error.verdict(), Verdict::RetrySameId);
        }
    }
}
