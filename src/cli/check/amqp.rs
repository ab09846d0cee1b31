//! Does the broker let us in?

use std::time::Duration;

use lapin::uri::AMQPUri;
use lapin::{Connection, ConnectionProperties, ErrorKind};
use url::Host;

use super::Finding;
use crate::settings::{Amqp, AmqpUrl};

/// How long saying goodbye may take.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);

pub(super) async fn look(amqp: &Amqp) -> Finding {
    let limit = amqp.connect_timeout;
    let result = match tokio::time::timeout(limit, connect(amqp)).await {
        Ok(Ok(())) => Ok("connected and logged in".to_owned()),
        Ok(Err(why)) => Err(why),
        Err(_) => Err(format!("no answer within {} ms", limit.as_millis())),
    };
    let at = |text: String| format!("{}: {text}", amqp.url);
    Finding::of("amqp", result.map(at).map_err(at))
}

async fn connect(amqp: &Amqp) -> Result<(), String> {
    let uri = uri(&amqp.url)?;
    let connection = Connection::connect_uri(uri, ConnectionProperties::default()).await;
    let connection = connection.map_err(|error| reason(&error))?;
    let channel = connection.create_channel().await;
    channel.map_err(|error| reason(&error))?;
    // A broker that is slow to say goodbye works all the same.
    let close = connection.close(200, "checked".into());
    let _ = tokio::time::timeout(CLOSE_WITHIN, close).await;
    Ok(())
}

fn uri(url: &AmqpUrl) -> Result<AMQPUri, String> {
    let url = url.expose();
    let mut uri: AMQPUri = url.as_str().parse().map_err(|_| "the URL cannot be read")?;
    // lapin reads an IPv6 address as no host, and would go to this machine.
    if let Some(Host::Ipv6(address)) = url.host() {
        uri.authority.host = address.to_string();
    }
    Ok(uri)
}

/// What the broker or the operating system said. A broker's texts name users and virtual hosts,
/// never passwords.
fn reason(error: &lapin::Error) -> String {
    match error.kind() {
        ErrorKind::IOError(error) => error.kind().to_string(),
        ErrorKind::ProtocolError(error) => format!("{} {}", error.get_id(), error.get_message()),
        _ => "it does not speak AMQP 0-9-1 with us".to_owned(),
    }
}
