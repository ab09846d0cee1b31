//! Many queues' lengths by passive declarations.

use futures_util::future::join_all;
use lapin::types::ShortString;
use lapin::{Channel, Connection};

use crate::intake::passive;

/// Queues that are asked for before the first answer. One that does not exist costs the channel, and
/// with it the answers to what was asked behind it.
const AT_ONCE: usize = 25;

/// The ready messages of each queue, in their order: one that does not exist has none. `None` when the
/// broker does not say.
pub(super) async fn ready(
    connection: &Connection,
    channel: &mut Channel,
    queues: &[ShortString],
) -> Option<Vec<u64>> {
    let mut ready = Vec::with_capacity(queues.len());
    while ready.len() < queues.len() {
        let next = queues[ready.len()..].iter().take(AT_ONCE);
        let asking = next.map(|queue| passive::find(channel, queue.clone()));
        for answer in join_all(asking).await {
            match answer {
                Ok(Some(queue)) => ready.push(queue.message_count().into()),
                Ok(None) => {
                    ready.push(0);
                    *channel = connection.create_channel().await.ok()?;
                    // Those behind it have had no answer.
                    break;
                }
                Err(_) => return None,
            }
        }
    }
    Some(ready)
}
