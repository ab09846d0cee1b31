//! An exchange for jobs without a worker: what publishers meet there is the test's choice.

use lapin::options::{
    BasicGetOptions, ExchangeDeclareOptions, ExchangeDeleteOptions, QueueBindOptions,
    QueueDeclareOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, Connection, ExchangeKind};

use super::rabbit::connection;

/// `<prefix>.send`, and queues of this connection's own.
pub struct SendExchange {
    channel: Channel,
    name: String,
    _connection: Connection,
}

/// A message that was stored.
pub struct Stored {
    pub key: String,
    pub properties: lapin::BasicProperties,
    pub job: serde_json::Value,
}

impl SendExchange {
    /// Declares the exchange. Nothing is bound to it.
    pub async fn declare(url: &str, prefix: &str) -> Self {
        let connection = connection(url).await;
        let channel = connection.create_channel().await.unwrap();
        let name = format!("{prefix}.send");
        let (kind, options) = (ExchangeKind::Topic, ExchangeDeclareOptions::default());
        let declared =
            channel.exchange_declare(name.as_str().into(), kind, options, FieldTable::default());
        declared.await.unwrap();
        Self {
            channel,
            name,
            _connection: connection,
        }
    }

    /// Binds a queue, which ends with this connection.
    pub async fn bind(&self, queue: &str, key: &str) {
        self.bind_with(queue, key, FieldTable::default()).await;
    }

    /// Binds a queue that stores nothing.
    pub async fn bind_full(&self, queue: &str, key: &str) {
        let mut arguments = FieldTable::default();
        arguments.insert("x-max-length".into(), AMQPValue::LongLongInt(0));
        let overflow = AMQPValue::LongString("reject-publish".into());
        arguments.insert("x-overflow".into(), overflow);
        self.bind_with(queue, key, arguments).await;
    }

    async fn bind_with(&self, queue: &str, key: &str, arguments: FieldTable) {
        let queue = self.queue(queue);
        let options = QueueDeclareOptions {
            exclusive: true,
            ..QueueDeclareOptions::default()
        };
        let declared = self
            .channel
            .queue_declare(queue.as_str().into(), options, arguments);
        declared.await.unwrap();
        let (options, none) = (QueueBindOptions::default(), FieldTable::default());
        let (queue, exchange) = (queue.as_str().into(), self.name.as_str().into());
        let bound = self
            .channel
            .queue_bind(queue, exchange, key.into(), options, none);
        bound.await.unwrap();
    }

    /// Takes everything out of a queue.
    pub async fn take_all(&self, queue: &str) -> Vec<Stored> {
        let (queue, get) = (self.queue(queue), BasicGetOptions { no_ack: true });
        let mut stored = Vec::new();
        while let Some(message) = self
            .channel
            .basic_get(queue.as_str().into(), get)
            .await
            .unwrap()
        {
            stored.push(Stored {
                key: message.routing_key.to_string(),
                properties: message.properties.clone(),
                job: serde_json::from_slice(&message.data).unwrap(),
            });
        }
        stored
    }

    fn queue(&self, queue: &str) -> String {
        format!("{}.{queue}", self.name)
    }

    /// Deletes the exchange.
    pub async fn delete(self) {
        let options = ExchangeDeleteOptions::default();
        let deleted = self
            .channel
            .exchange_delete(self.name.as_str().into(), options);
        deleted.await.unwrap();
    }
}
