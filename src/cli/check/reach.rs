//! Can a TCP connection be made? Asked first of every service, because its answer is the clearest.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, lookup_host};
use url::Url;

use super::Finding;

/// Looks at one service: first whether it can be connected to, then what `ask` says. `shown` is its
/// address without secrets; all of it together may take `limit`.
pub(super) async fn look(
    what: String,
    shown: String,
    limit: Duration,
    ask: impl Future<Output = Result<String, String>>,
) -> Finding {
    let result = match tokio::time::timeout(limit, ask).await {
        Ok(result) => result,
        Err(_) => Err(format!("no answer within {} ms", limit.as_millis())),
    };
    let at = |text: String| format!("{shown}: {text}");
    Finding::of(what, result.map(at).map_err(at))
}

/// A connection to the host of `url`, or why there is none.
pub(super) async fn connect(url: &Url, default_port: u16) -> Result<TcpStream, String> {
    let host = bare_host(url);
    let port = url.port_or_known_default().unwrap_or(default_port);
    let addresses = lookup_host((host.as_str(), port)).await;
    let addresses: Vec<_> = addresses
        .map_err(|_| "its host name cannot be looked up")?
        .collect();
    let stream = TcpStream::connect(&addresses[..]).await;
    stream.map_err(|error| error.kind().to_string())
}

/// How long a service may take to show what it is.
const SHOWS_WITHIN: Duration = Duration::from_millis(300);

/// Whether another service than the expected one answers there, as a question for the operator.
/// Asked only when the expected one did not answer as it should: it leaves a line in a broker's log.
pub(super) async fn stranger(url: &Url, default_port: u16) -> Option<&'static str> {
    let asking = async {
        let mut stream = connect(url, default_port).await.ok()?;
        // As long as a broker's greeting, and a command for Redis.
        stream.write_all(b"PING\r\n\r\n").await.ok()?;
        let mut answer = [0; 4];
        stream.read_exact(&mut answer).await.ok()?;
        Some(answer)
    };
    match &tokio::time::timeout(SHOWS_WITHIN, asking).await.ok()?? {
        b"AMQP" => Some("is this a RabbitMQ port?"),
        b"+PON" | b"-NOA" | b"-ERR" => Some("is this a Redis port?"),
        b"HTTP" => Some("is this a web server's port?"),
        _ => None,
    }
}

/// The host as look-ups and certificates want it: an IPv6 address without its brackets.
pub(super) fn bare_host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    host.trim_matches(['[', ']']).to_owned()
}
