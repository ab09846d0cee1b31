//! Are the queues that exist as the settings want them? Nothing is created.
//!
//! Only a declaration makes the broker compare arguments, and one of a queue that is missing would
//! create it. So each queue is first looked for passively, and declared only when it is there.

use lapin::options::QueueDeclareOptions;
use lapin::types::{FieldTable, ShortString};
use lapin::{Connection, ErrorKind};

use crate::intake::connection::explain;
use crate::intake::{AmqpOptions, Mismatch, Names, topology};

/// Compares every queue with what a worker of these options would declare.
///
/// # Errors
/// What a worker would say of the first queue that differs.
pub(super) async fn compare(
    connection: &Connection,
    options: &AmqpOptions,
) -> Result<String, String> {
    let names = Names::new(&options.prefix).map_err(|error| error.to_string())?;
    let wanted = topology::queues(&names, options);
    let mut found = 0;
    for (name, arguments) in &wanted {
        if declare(connection, name, None).await? {
            declare(connection, name, Some(arguments)).await?;
            found += 1;
        }
    }
    Ok(match wanted.len() - found {
        0 => "its queues are as the settings want them".to_owned(),
        missing => format!("{missing} queues are missing, which a worker will declare"),
    })
}

/// Declares a queue, passively without arguments; false when it is not there. On a channel of its
/// own, because a refusal closes it.
async fn declare(
    connection: &Connection,
    name: &ShortString,
    arguments: Option<&FieldTable>,
) -> Result<bool, String> {
    let channel = connection.create_channel().await;
    let channel = channel.map_err(|error| explain(&error))?;
    let how = QueueDeclareOptions {
        passive: arguments.is_none(),
        durable: true,
        ..QueueDeclareOptions::default()
    };
    let arguments = arguments.cloned().unwrap_or_default();
    let declared = channel.queue_declare(name.clone(), how, arguments).await;
    let Err(error) = declared else {
        let _ = channel.close(200, "checked".into()).await;
        return Ok(true);
    };
    let is_missing =
        matches!(error.kind(), ErrorKind::ProtocolError(error) if error.get_id() == NOT_FOUND);
    if how.passive && is_missing {
        return Ok(false);
    }
    let reason = explain(&error);
    Err(Mismatch::read(&reason).map_or_else(
        || format!("cannot look at the queue {name}: {reason}"),
        |mismatch| mismatch.to_string(),
    ))
}

/// The broker's code for a queue that does not exist.
const NOT_FOUND: u16 = 404;
