//! Looking at a queue without creating it.

use lapin::options::QueueDeclareOptions;
use lapin::types::{FieldTable, ShortString};
use lapin::{Channel, ErrorKind, Queue};

/// The broker's code for a queue or an exchange that does not exist.
pub(crate) const NOT_FOUND: u16 = 404;

/// The queue of that name, with the counts that a passive declaration tells: ready messages and
/// consumers. `None` when there is no such queue, which closes the channel.
///
/// # Errors
/// Whatever else the broker answers; a refusal closes the channel too.
pub(crate) async fn find(channel: &Channel, name: ShortString) -> lapin::Result<Option<Queue>> {
    let passive = QueueDeclareOptions {
        passive: true,
        ..QueueDeclareOptions::default()
    };
    let declared = channel.queue_declare(name, passive, FieldTable::default());
    match declared.await {
        Ok(queue) => Ok(Some(queue)),
        Err(error) if has_code(&error, NOT_FOUND) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the broker has refused something with this code.
pub(crate) fn has_code(error: &lapin::Error, code: u16) -> bool {
    matches!(error.kind(), ErrorKind::ProtocolError(error) if error.get_id() == code)
}
