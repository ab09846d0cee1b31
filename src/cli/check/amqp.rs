//! Does the broker let us in, is it new enough, and are its queues as the settings want them?

use std::time::Duration;

use lapin::Connection;

use super::{Finding, queues, reach};
use crate::intake::{AmqpOptions, Endpoint, Purpose, connection};
use crate::settings::Settings;

/// Where brokers listen unless told otherwise.
const PORT: u16 = 5672;
const TLS_PORT: u16 = 5671;

/// How long saying goodbye may take.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);

pub(super) async fn look(settings: &Settings) -> Finding {
    let amqp = &settings.amqp;
    let (what, shown) = ("amqp".to_owned(), amqp.url.to_string());
    // Connecting, asking for the version, logging in, and looking at the queues: each may take the
    // whole time-out.
    let limit = amqp.connect_timeout * 4;
    reach::look(what, shown, limit, Box::pin(log_in(settings))).await
}

async fn log_in(settings: &Settings) -> Result<String, String> {
    let url = settings.amqp.url.expose();
    let port = if url.scheme() == "amqps" {
        TLS_PORT
    } else {
        PORT
    };
    drop(reach::connect(url, port).await?);
    let options = crate::cli::amqp::options(settings).map_err(|error| error.to_string())?;
    let connection = match connect(&options).await {
        Ok(connection) => connection,
        Err(error) => match reach::stranger(url, port).await {
            Some(doubt) if !doubt.contains("RabbitMQ") => return Err(format!("{error}; {doubt}")),
            _ => return Err(error),
        },
    };
    let queues = queues::compare(&connection, &options).await;
    leave(connection).await;
    queues.map(|queues| format!("connected and logged in; {queues}"))
}

async fn connect(options: &AmqpOptions) -> Result<Connection, String> {
    let endpoint = Endpoint::parse(&options.url).map_err(|error| error.to_string())?;
    let connected = connection::connect(&endpoint, options, Purpose::Enqueue).await;
    connected.map_err(|error| match error.to_string() {
        text if text.contains("ACCESS_REFUSED") && text.contains("Login was refused") => {
            "user or password is wrong (amqp.url)".to_owned()
        }
        text => text,
    })
}

/// A broker that is slow to say goodbye works all the same.
async fn leave(connection: Connection) {
    let close = connection.close(200, "checked".into());
    let _ = tokio::time::timeout(CLOSE_WITHIN, close).await;
}
