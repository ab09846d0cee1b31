//! Does the broker let us in?

use std::time::Duration;

use lapin::uri::AMQPUri;
use lapin::{Connection, ConnectionProperties, ErrorKind};

use super::{Finding, reach};
use crate::settings::Amqp;

/// How long saying goodbye may take.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);

pub(super) async fn look(amqp: &Amqp) -> Finding {
    let (what, shown) = ("amqp".to_owned(), amqp.url.to_string());
    reach::look(what, shown, amqp.connect_timeout, log_in(amqp)).await
}

async fn log_in(amqp: &Amqp) -> Result<String, String> {
    let url = amqp.url.expose();
    let mut uri: AMQPUri = url.as_str().parse().map_err(|_| "the URL cannot be read")?;
    drop(reach::connect(url, uri.authority.port).await?);
    // lapin reads an IPv6 address as no host, and would go to this machine.
    uri.authority.host = reach::bare_host(url);
    let connection = Connection::connect_uri(uri, ConnectionProperties::default()).await;
    let connection = connection.map_err(|error| reason(&error))?;
    let channel = connection.create_channel().await;
    channel.map_err(|error| reason(&error))?;
    // A broker that is slow to say goodbye works all the same.
    let close = connection.close(200, "checked".into());
    let _ = tokio::time::timeout(CLOSE_WITHIN, close).await;
    Ok("connected and logged in".to_owned())
}

/// What the broker or the operating system said. A broker's texts name users and virtual hosts,
/// never passwords.
fn reason(error: &lapin::Error) -> String {
    match error.kind() {
        ErrorKind::IOError(error) => {
            format!(
                "it can be reached, but the connection failed ({})",
                error.kind()
            )
        }
        ErrorKind::ProtocolError(error) => format!("{} {}", error.get_id(), error.get_message()),
        _ => "it does not speak AMQP 0-9-1 with us".to_owned(),
    }
}
