//! Publishes jobs as other programs would: persistent, mandatory, confirmed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::{BasicProperties, Channel, Confirmation, Connection};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::rabbit::connection;

/// How many publishes may be unconfirmed at a time.
const OUTSTANDING: usize = 500;

/// One job to be published.
#[derive(Debug, Clone)]
pub struct Offer {
    pub id: String,
    pub account: String,
    pub lane: &'static str,
    /// Further fields, and those that differ from what most jobs have.
    pub fields: Map<String, Value>,
}

impl Offer {
    pub fn otp(account: &str, id: impl Into<String>) -> Self {
        Self::new(account, id, "transactional")
    }

    pub fn marketing(account: &str, id: impl Into<String>) -> Self {
        Self::new(account, id, "marketing")
    }

    fn new(account: &str, id: impl Into<String>, lane: &'static str) -> Self {
        Self {
            id: id.into(),
            account: account.to_owned(),
            lane,
            fields: Map::new(),
        }
    }

    /// The same with another field, or another value of one.
    pub fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(field.to_owned(), value.into());
        self
    }

    /// The same, and it says that it is queued now.
    pub fn queued_now(self) -> Self {
        self.with("enqueued_at", format!("{:.3}", jiff::Timestamp::now()))
    }

    /// So many jobs whose ids begin with `name`.
    pub fn many(count: usize, name: &str, make: impl Fn(String) -> Self) -> Vec<Self> {
        (0..count).map(|i| make(format!("{name}-{i}"))).collect()
    }

    /// About 300 bytes, as real jobs have.
    pub fn body(&self) -> Vec<u8> {
        let origin = if self.lane == "marketing" {
            "campaign"
        } else {
            "api"
        };
        let mut job = json!({
            "id": self.id, "account_id": self.account, "channel": "sms", "origin": origin,
            "to": "+447700900123", "from": "Acme",
            "body": "Your code is 123456. It is valid for five minutes; nobody of ours will ever \
                     ask you for it. Not you? Tell us at once.",
            "metadata": {"template": "code-7", "trace": "4bf92f3577b34da6"},
        });
        job.as_object_mut().unwrap().extend(self.fields.clone());
        serde_json::to_vec(&job).unwrap()
    }
}

/// A connection that publishes to one exchange.
#[derive(Clone)]
pub struct Publisher {
    channel: Channel,
    prefix: String,
    // Dropping the connection would close it.
    _connection: Arc<Connection>,
}

impl Publisher {
    /// Publishes to `<prefix>.send`, which must have been declared.
    pub async fn connect(url: &str, prefix: &str) -> Self {
        let connection = connection(url).await;
        let channel = connection.create_channel().await.unwrap();
        let options = ConfirmSelectOptions::default();
        channel.confirm_select(options).await.unwrap();
        Self {
            channel,
            prefix: prefix.to_owned(),
            _connection: Arc::new(connection),
        }
    }

    async fn send(&self, offer: &Offer) -> lapin::Result<lapin::PublisherConfirm> {
        self.send_to("send", offer).await
    }

    async fn send_to(
        &self,
        exchange: &str,
        offer: &Offer,
    ) -> lapin::Result<lapin::PublisherConfirm> {
        let key = format!("{}.{}", offer.lane, offer.account);
        let properties = BasicProperties::default()
            .with_delivery_mode(2)
            .with_content_type("application/json".into());
        let options = BasicPublishOptions {
            mandatory: true,
            ..BasicPublishOptions::default()
        };
        let exchange = format!("{}.{exchange}", self.prefix);
        self.channel
            .basic_publish(
                exchange.into(),
                key.into(),
                options,
                &offer.body(),
                properties,
            )
            .await
    }

    /// Publishes all of them as fast as the broker confirms.
    pub async fn publish_all(&self, offers: &[Offer]) {
        self.publish_all_to("send", offers).await;
    }

    /// The same to another exchange of the prefix, such as `marketing.shed`.
    pub async fn publish_all_to(&self, exchange: &str, offers: &[Offer]) {
        for chunk in offers.chunks(OUTSTANDING) {
            let mut confirms = Vec::with_capacity(chunk.len());
            for offer in chunk {
                confirms.push(self.send_to(exchange, offer).await.unwrap());
            }
            for confirm in confirms {
                assert_stored(&confirm.await.unwrap());
            }
        }
    }

    /// The same straight to a queue of the prefix, by its name.
    pub async fn publish_to_queue(&self, queue: &str, offers: &[Offer]) {
        for offer in offers {
            let key = format!("{}.{queue}", self.prefix);
            let options = BasicPublishOptions::default();
            let properties = BasicProperties::default().with_delivery_mode(2);
            let body = offer.body();
            let sent = self
                .channel
                .basic_publish("".into(), key.into(), options, &body, properties)
                .await
                .unwrap();
            assert_stored(&sent.await.unwrap());
        }
    }

    /// Publishes them one by one at so many per second; returns each one's instant of publishing.
    pub async fn publish_at(&self, per_second: u32, offers: &[Offer]) -> HashMap<String, Instant> {
        let mut tick = interval(Duration::from_secs(1) / per_second);
        tick.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let mut published = HashMap::with_capacity(offers.len());
        let mut confirms = Vec::with_capacity(offers.len());
        for offer in offers {
            tick.tick().await;
            published.insert(offer.id.clone(), Instant::now());
            confirms.push(self.send(offer).await.unwrap());
        }
        for confirm in confirms {
            assert_stored(&confirm.await.unwrap());
        }
        published
    }
}

fn assert_stored(confirm: &Confirmation) {
    assert!(
        matches!(confirm, Confirmation::Ack(None)),
        "not stored: {confirm:?}"
    );
}
