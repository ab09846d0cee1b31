//! Are the queues that exist as the settings want them? Nothing is created.
//!
//! Only a declaration makes the broker compare arguments, and one of a queue that is missing would
//! create it. So each queue is first looked for passively, and declared only when it is there.

use lapin::options::QueueDeclareOptions;
use lapin::types::{FieldTable, ShortString};
use lapin::{Channel, Connection};

use crate::intake::connection::explain;
use crate::intake::{AmqpOptions, Mismatch, Names, passive, topology};

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
        if is_there(connection, name).await? {
            declare(connection, name, arguments).await?;
            found += 1;
        }
    }
    Ok(match wanted.len() - found {
        0 => "its queues are as the settings want them".to_owned(),
        missing => format!("{missing} queues are missing, which a worker will declare"),
    })
}

/// Whether there is such a queue.
async fn is_there(connection: &Connection, name: &ShortString) -> Result<bool, String> {
    on_channel(connection, name, async |channel| {
        passive::find(channel, name.clone())
            .await
            .map(|found| found.is_some())
    })
    .await
}

/// Declares a queue that is there.
async fn declare(
    connection: &Connection,
    name: &ShortString,
    arguments: &FieldTable,
) -> Result<(), String> {
    let how = QueueDeclareOptions {
        durable: true,
        ..QueueDeclareOptions::default()
    };
    on_channel(connection, name, async |channel| {
        let declared = channel.queue_declare(name.clone(), how, arguments.clone());
        declared.await.map(drop)
    })
    .await
}

/// Does something on a channel of its own, because a refusal closes it.
async fn on_channel<T>(
    connection: &Connection,
    name: &ShortString,
    act: impl AsyncFnOnce(&Channel) -> lapin::Result<T>,
) -> Result<T, String> {
    let channel = connection.create_channel().await;
    let channel = channel.map_err(|error| explain(&error))?;
    let done = act(&channel).await.map_err(|error| {
        let reason = explain(&error);
        Mismatch::read(&reason).map_or_else(
            || format!("cannot look at the queue {name}: {reason}"),
            |mismatch| mismatch.to_string(),
        )
    })?;
    // Where it found nothing the broker has closed it.
    let _ = channel.close(200, "checked".into()).await;
    Ok(done)
}
