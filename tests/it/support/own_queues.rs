//! Accounts' own queues as a worker would have left them, for tests of what is shown of them.

use futures_util::future::join_all;
use lapin::options::{BasicPublishOptions, QueueDeclareOptions, QueueDeleteOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Connection};

use super::postgres::TestDatabase;
use super::rabbit::connection;
use super::scene::Scene;

/// One such queue: it is written down, and exists unless it is about to be forgotten.
#[derive(Debug, Clone)]
pub struct Own {
    pub number: i64,
    pub lane: &'static str,
    pub account: String,
    pub state: &'static str,
    /// Jobs that lie in it; `None` where it does not exist.
    pub jobs: Option<usize>,
}

impl Own {
    /// An open one in the marketing lane.
    pub fn open(number: i64, account: &str, jobs: usize) -> Self {
        Self {
            number,
            lane: "marketing",
            account: account.to_owned(),
            state: "open",
            jobs: Some(jobs),
        }
    }

    /// One that has come so far.
    pub fn in_state(self, state: &'static str) -> Self {
        Self { state, ..self }
    }

    /// One that is about to be forgotten: the broker has none any more.
    pub fn gone(self) -> Self {
        Self {
            state: "closing",
            jobs: None,
            ..self
        }
    }

    fn name(&self, prefix: &str) -> String {
        let Self { lane, number, .. } = self;
        format!("{prefix}.{lane}.hot.{number}")
    }
}

/// Queues that were made by hand. Nobody sends jobs there.
pub struct OwnQueues {
    channel: Channel,
    prefix: String,
    _connection: Connection,
}

impl OwnQueues {
    pub async fn connect(scene: &Scene) -> Self {
        let connection = connection(&scene.amqp).await;
        Self {
            channel: connection.create_channel().await.unwrap(),
            prefix: scene.prefix.clone(),
            _connection: connection,
        }
    }

    /// Makes queues, writes them down, and fills them.
    pub async fn make(&self, database: &TestDatabase, queues: &[Own]) {
        join_all(queues.iter().map(|own| self.fill(own))).await;
        let row = |own: &Own| {
            let Own {
                number,
                lane,
                account,
                state,
                ..
            } = own;
            let prefix = &self.prefix;
            format!("({number}, '{prefix}', '{lane}', '{account}', '{state}')")
        };
        let rows: Vec<_> = queues.iter().map(row).collect();
        let columns = "number, prefix, lane, account_id, state";
        let insert = format!(
            "INSERT INTO hot_queues ({columns}) VALUES {}",
            rows.join(",")
        );
        database.execute(&insert).await;
    }

    /// Makes one and fills it, and writes nothing down.
    pub async fn fill(&self, own: &Own) {
        let Some(jobs) = own.jobs else {
            return;
        };
        let name = own.name(&self.prefix);
        let mut arguments = FieldTable::default();
        let quorum = AMQPValue::LongString("quorum".into());
        arguments.insert("x-queue-type".into(), quorum);
        let options = QueueDeclareOptions {
            durable: true,
            ..QueueDeclareOptions::default()
        };
        let declared = self
            .channel
            .queue_declare(name.as_str().into(), options, arguments);
        declared.await.unwrap();
        for _ in 0..jobs {
            let options = BasicPublishOptions::default();
            let properties = BasicProperties::default().with_delivery_mode(2);
            let published = self.channel.basic_publish(
                "".into(),
                name.as_str().into(),
                options,
                b"{}",
                properties,
            );
            published.await.unwrap();
        }
    }

    /// Removes queues, so that a shared broker stays small.
    pub async fn remove(&self, queues: &[Own]) {
        let names = queues.iter().map(|own| own.name(&self.prefix));
        let deleting = names.map(|name| {
            let options = QueueDeleteOptions::default();
            self.channel.queue_delete(name.into(), options)
        });
        for deleted in join_all(deleting).await {
            deleted.unwrap();
        }
    }
}
