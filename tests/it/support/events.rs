//! Listens to the outcome events, as a campaign tool would.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use futures_util::StreamExt as _;
use lapin::Connection;
use lapin::options::{BasicConsumeOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::FieldTable;
use serde_json::Value;
use tokio::task::JoinHandle;

use super::rabbit::connection;

/// Every outcome event of a prefix since the listening began.
pub struct Events {
    told: Arc<Mutex<Vec<Value>>>,
    listening: JoinHandle<()>,
    // Dropping the connection would close it.
    _connection: Connection,
}

impl Events {
    /// Listens to `<prefix>.outcomes`, which must have been declared.
    pub async fn listen(url: &str, prefix: &str) -> Self {
        let connection = connection(url).await;
        let channel = connection.create_channel().await.unwrap();
        let none = FieldTable::default;
        let own = QueueDeclareOptions {
            exclusive: true,
            ..QueueDeclareOptions::default()
        };
        let queue = channel.queue_declare("".into(), own, none()).await.unwrap();
        let queue = queue.name().clone();
        let exchange = format!("{prefix}.outcomes");
        let bound = channel.queue_bind(
            queue.clone(),
            exchange.into(),
            "#".into(),
            QueueBindOptions::default(),
            none(),
        );
        bound.await.unwrap();
        let options = BasicConsumeOptions {
            no_ack: true,
            ..BasicConsumeOptions::default()
        };
        let consumer = channel.basic_consume(queue, "".into(), options, none());
        let mut consumer = consumer.await.unwrap();
        let told = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&told);
        let listening = tokio::spawn(async move {
            while let Some(Ok(message)) = consumer.next().await {
                let events: Vec<Value> = serde_json::from_slice(&message.data).unwrap();
                kept.lock().unwrap().extend(events);
            }
        });
        Self {
            told,
            listening,
            _connection: connection,
        }
    }

    /// All events, in the order in which they came.
    pub fn all(&self) -> Vec<Value> {
        self.told.lock().unwrap().clone()
    }

    /// The events of one job.
    pub fn of(&self, account: &str, id: &str) -> Vec<Value> {
        let told = self.told.lock().unwrap();
        let is_its = |event: &&Value| event["account_id"] == account && event["id"] == id;
        told.iter().filter(is_its).cloned().collect()
    }

    /// How many different jobs ended in each way: outcome and reason.
    pub fn ends(&self) -> HashMap<(String, String), usize> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut jobs = HashMap::new();
        for event in self.told.lock().unwrap().iter() {
            let job = (text(&event["account_id"]), text(&event["id"]));
            jobs.insert(job, (text(&event["outcome"]), text(&event["reason"])));
        }
        let mut ends = HashMap::new();
        for end in jobs.into_values() {
            *ends.entry(end).or_insert(0) += 1;
        }
        ends
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.listening.abort();
    }
}
