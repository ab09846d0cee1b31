//! Many queues' lengths and consumers by passive declarations.

use futures_util::future::join_all;
use lapin::types::ShortString;
use lapin::{Channel, Connection};

use crate::intake::passive;

/// Queues that are asked for before the first answer. One that does not exist costs the channel, and
/// with it the answers to what was asked behind it.
const AT_ONCE: usize = 25;

/// What a queue has: none of both where it does not exist.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Found {
    /// Ready messages.
    pub ready: u64,
    /// Consumers.
    pub consumers: u32,
}

/// What each queue has, in their order. `None` when the broker does not say.
pub(super) async fn find_all(
    connection: &Connection,
    channel: &mut Channel,
    queues: &[ShortString],
) -> Option<Vec<Found>> {
    let mut found = Vec::with_capacity(queues.len());
    while found.len() < queues.len() {
        let next = queues[found.len()..].iter().take(AT_ONCE);
        let asking = next.map(|queue| passive::find(channel, queue.clone()));
        for answer in join_all(asking).await {
            match answer {
                Ok(Some(queue)) => found.push(Found {
                    ready: queue.message_count().into(),
                    consumers: queue.consumer_count(),
                }),
                Ok(None) => {
                    found.push(Found::default());
                    *channel = connection.create_channel().await.ok()?;
                    // Those behind it have had no answer.
                    break;
                }
                Err(_) => return None,
            }
        }
    }
    Some(found)
}
