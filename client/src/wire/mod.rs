//! What the worker's own publisher is made of as well. It is no part of what this crate promises
//! and may change in any version, with the AMQP library whose types it shows. Programs that publish
//! jobs need only [`Publisher`](crate::Publisher).

mod batch;
mod endpoint;

use lapin::ErrorKind;

pub use batch::{Failure, Late, Message, publish};
pub use endpoint::{Endpoint, UrlError};

/// What an error of the AMQP library means, in fewer words than its own.
#[must_use]
pub fn explain(error: &lapin::Error) -> String {
    match error.kind() {
        ErrorKind::ProtocolError(error) => error.get_message().to_string(),
        ErrorKind::IOError(error) => error.to_string(),
        ErrorKind::MissingHeartbeatError => "the broker has fallen silent".to_owned(),
        ErrorKind::InvalidChannelState(..) => "the channel is closed".to_owned(),
        ErrorKind::InvalidConnectionState(_) => "the connection is closed".to_owned(),
        _ => error.to_string(),
    }
}
