//! Does the broker let us in, and is it new enough?

use std::time::Duration;

use lapin::Connection;

use super::{Finding, reach};
use crate::intake::{Endpoint, Purpose, connection};
use crate::settings::Settings;

/// Where brokers listen unless told otherwise.
const PORT: u16 = 5672;
const TLS_PORT: u16 = 5671;

/// How long saying goodbye may take.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);

pub(super) async fn look(settings: &Settings) -> Finding {
    let amqp = &settings.amqp;
    let (what, shown) = ("amqp".to_owned(), amqp.url.to_string());
    // Connecting, asking for the version, and logging in: each may take the whole time-out.
    let limit = amqp.connect_timeout * 3;
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
    let endpoint = Endpoint::parse(url.as_str()).map_err(|error| error.to_string())?;
    let connection = connection::connect(&endpoint, &options, Purpose::Enqueue).await;
    leave(connection.map_err(|error| error.to_string())?).await;
    Ok("connected and logged in".to_owned())
}

/// A broker that is slow to say goodbye works all the same.
async fn leave(connection: Connection) {
    let close = connection.close(200, "checked".into());
    let _ = tokio::time::timeout(CLOSE_WITHIN, close).await;
}
