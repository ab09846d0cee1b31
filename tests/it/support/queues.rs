//! Looks at the queues of one prefix from outside, and removes them.

use lapin::options::{ExchangeDeleteOptions, QueueDeclareOptions, QueueDeleteOptions};
use lapin::types::FieldTable;
use lapin::{Channel, Connection};

use super::rabbit::connection;

/// Every queue of a prefix, without the prefix.
const QUEUES: [&str; 9] = [
    "transactional",
    "marketing",
    "transactional.delay",
    "marketing.delay",
    "transactional.parked",
    "marketing.parked",
    "transactional.admitted",
    "marketing.admitted",
    "dead",
];

const EXCHANGES: [&str; 9] = [
    "send",
    "shared",
    "unrouted",
    "transactional.shed",
    "marketing.shed",
    "transactional.park",
    "marketing.park",
    "admitted",
    "outcomes",
];

/// The queues of one prefix.
pub struct Queues {
    channel: Channel,
    prefix: String,
    _connection: Connection,
}

impl Queues {
    pub async fn connect(url: &str, prefix: &str) -> Self {
        let connection = connection(url).await;
        Self {
            channel: connection.create_channel().await.unwrap(),
            prefix: prefix.to_owned(),
            _connection: connection,
        }
    }

    /// Messages ready in one queue; what a consumer holds does not count.
    pub async fn ready(&self, queue: &str) -> usize {
        let options = QueueDeclareOptions {
            passive: true,
            ..QueueDeclareOptions::default()
        };
        let name = format!("{}.{queue}", self.prefix);
        let declared = self
            .channel
            .queue_declare(name.into(), options, FieldTable::default());
        declared.await.unwrap().message_count() as usize
    }

    /// Messages ready in all queues but the dead one.
    pub async fn all_ready(&self) -> usize {
        let mut sum = 0;
        for queue in QUEUES.into_iter().filter(|queue| *queue != "dead") {
            sum += self.ready(queue).await;
        }
        sum
    }

    /// Deletes one queue, as somebody might by mistake.
    pub async fn delete(&self, queue: &str) {
        let name = format!("{}.{queue}", self.prefix);
        let options = QueueDeleteOptions::default();
        let deleted = self.channel.queue_delete(name.into(), options);
        deleted.await.unwrap();
    }

    /// Removes every queue and exchange of the prefix, so that a shared broker stays small.
    pub async fn remove(self) {
        for queue in QUEUES {
            let name = format!("{}.{queue}", self.prefix);
            let options = QueueDeleteOptions::default();
            self.channel
                .queue_delete(name.into(), options)
                .await
                .unwrap();
        }
        for exchange in EXCHANGES {
            let name = format!("{}.{exchange}", self.prefix);
            let options = ExchangeDeleteOptions::default();
            self.channel
                .exchange_delete(name.into(), options)
                .await
                .unwrap();
        }
    }
}
