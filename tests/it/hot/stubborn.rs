//! A publisher that does not give up: what was not confirmed it publishes again.

use std::time::Duration;

use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties};
use tokio::time::{sleep, timeout};

use crate::support::jobs::Offer;

/// How long a confirm may take before the connection counts as lost.
const CONFIRM: Duration = Duration::from_secs(5);

/// Publishes every job until the broker has confirmed it, over new connections as they are needed.
pub async fn publish(url: &str, prefix: &str, offers: &[Offer]) {
    let mut left: Vec<&Offer> = offers.iter().collect();
    while !left.is_empty() {
        if let Ok((_connection, channel)) = connect(url).await {
            left = publish_once(&channel, prefix, left).await;
        }
        if !left.is_empty() {
            sleep(Duration::from_millis(200)).await;
        }
    }
}

async fn connect(url: &str) -> Result<(Connection, Channel), lapin::Error> {
    let connection = Connection::connect(url, ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    channel
        .confirm_select(ConfirmSelectOptions::default())
        .await?;
    Ok((connection, channel))
}

/// Gives those that are not known to be stored.
async fn publish_once<'a>(
    channel: &Channel,
    prefix: &str,
    offers: Vec<&'a Offer>,
) -> Vec<&'a Offer> {
    let mut confirms = Vec::new();
    let mut left = Vec::new();
    for offer in offers {
        let key = format!("{}.{}", offer.lane, offer.account);
        let options = BasicPublishOptions {
            mandatory: true,
            ..BasicPublishOptions::default()
        };
        let properties = BasicProperties::default().with_delivery_mode(2);
        let exchange = format!("{prefix}.send");
        let body = offer.body();
        let publishing =
            channel.basic_publish(exchange.into(), key.into(), options, &body, properties);
        match publishing.await {
            Ok(confirm) => confirms.push((offer, confirm)),
            Err(_) => left.push(offer),
        }
    }
    for (offer, confirm) in confirms {
        let confirmed = timeout(CONFIRM, confirm).await;
        // A returned one is stored nowhere: the exchanges may be missing just now.
        if !matches!(confirmed, Ok(Ok(Confirmation::Ack(None)))) {
            left.push(offer);
        }
    }
    left
}
