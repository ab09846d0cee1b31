//! Asks the broker for its version.
//!
//! The client library does not tell what the server said of itself in the handshake, so a
//! connection of its own is opened, read as far as the server's greeting, and dropped. That also
//! shows that somebody answers before the library starts a thread for the real connection, which
//! it could not take back from a peer that accepts connections and then says nothing.

use std::io;
use std::time::Duration;

use futures_util::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use lapin::protocol::connection::AMQPMethod;
use lapin::protocol::{AMQPClass, parse_class};
use lapin::tcp::{AMQPUriTcpExt as _, OwnedTLSConfig};
use lapin::types::{AMQPValue, FieldTable};
use lapin::uri::AMQPUri;

use super::endpoint::Endpoint;
use super::error::IntakeError;

/// Quorum queues have a message TTL and at-least-once dead-lettering from here on.
const OLDEST: (u32, u32) = (3, 10);

/// A client's first words: protocol AMQP 0-9-1.
const HEADER: &[u8; 8] = b"AMQP\x00\x00\x09\x01";
/// A frame's type, channel and length.
const FRAME_HEAD: usize = 7;
const METHOD_FRAME: u8 = 1;
/// A greeting has a few hundred bytes; whatever says that it sends more is no broker.
const LONGEST_GREETING: u32 = 64 * 1024;

/// What a broker says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Greeting {
    /// Such as `RabbitMQ`.
    pub product: String,
    /// Such as `3.10.8`.
    pub version: String,
}

impl Greeting {
    /// Whether the broker is known to be too old. What calls itself by another name than RabbitMQ
    /// counts its versions differently, so nothing is known of it.
    #[must_use]
    pub fn is_too_old(&self) -> bool {
        let mut numbers = self.version.split(['.', '-', '+']).map(str::parse::<u32>);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(major)), Some(Ok(minor))) if self.product == "RabbitMQ" => {
                (major, minor) < OLDEST
            }
            _ => false,
        }
    }
}

/// Fails when the broker does not answer within `limit`, or is too old.
pub(super) async fn check(
    endpoint: &Endpoint,
    uri: &AMQPUri,
    limit: Duration,
) -> Result<(), IntakeError> {
    let address = || endpoint.address();
    let greeting = tokio::time::timeout(limit, ask(uri))
        .await
        .map_err(|_| IntakeError::TimedOut {
            what: format!("the greeting of the broker at {}", address()),
            limit,
        })?
        .map_err(|error| IntakeError::Connect {
            address: address(),
            reason: error.to_string(),
        })?;
    if greeting.is_too_old() {
        return Err(IntakeError::TooOld {
            address: address(),
            version: greeting.version,
        });
    }
    Ok(())
}

async fn ask(uri: &AMQPUri) -> io::Result<Greeting> {
    let runtime = lapin::runtime::default_runtime().map_err(io::Error::other)?;
    let tls = OwnedTLSConfig::default();
    let mut stream = uri
        .connect_with_config_async(tls.as_ref(), &runtime)
        .await?;
    let greeting = greet(&mut stream).await;
    // Whether the broker takes note of our leaving does not matter.
    drop(stream.close().await);
    greeting
}

async fn greet<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S) -> io::Result<Greeting> {
    stream.write_all(HEADER).await?;
    stream.flush().await?;
    let mut head = [0; FRAME_HEAD];
    stream.read_exact(&mut head).await?;
    if head.starts_with(b"AMQP") {
        return Err(io::Error::other(
            "it speaks another version of AMQP than 0-9-1",
        ));
    }
    let [kind, _, _, length @ ..] = head;
    let length = u32::from_be_bytes(length);
    if kind != METHOD_FRAME || length > LONGEST_GREETING {
        return Err(io::Error::other("it does not speak AMQP"));
    }
    let mut payload = vec![0; length as usize];
    stream.read_exact(&mut payload).await?;
    match parse_class(payload.as_slice()) {
        Ok((_, AMQPClass::Connection(AMQPMethod::Start(start)))) => Ok(Greeting {
            product: text(&start.server_properties, "product"),
            version: text(&start.server_properties, "version"),
        }),
        _ => Err(io::Error::other("it does not greet as AMQP brokers do")),
    }
}

fn text(table: &FieldTable, name: &str) -> String {
    match table.inner().get(name) {
        Some(AMQPValue::LongString(text)) => String::from_utf8_lossy(text.as_bytes()).into_owned(),
        Some(AMQPValue::ShortString(text)) => text.to_string(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    fn greeting(product: &str, version: &str) -> Greeting {
        Greeting {
            product: product.to_owned(),
            version: version.to_owned(),
        }
    }

    fn field(name: &str, value: &str) -> Vec<u8> {
        let mut bytes = vec![u8::try_from(name.len()).unwrap()];
        bytes.extend(name.as_bytes());
        bytes.push(b'S');
        bytes.extend(u32::try_from(value.len()).unwrap().to_be_bytes());
        bytes.extend(value.as_bytes());
        bytes
    }

    /// A `connection.start` frame, written by hand from the protocol's definition.
    fn start(product: &str, version: &str) -> Vec<u8> {
        let table = [field("product", product), field("version", version)].concat();
        let mut payload = vec![0, 10, 0, 10, 0, 9];
        payload.extend(u32::try_from(table.len()).unwrap().to_be_bytes());
        payload.extend(table);
        for text in ["PLAIN", "en_US"] {
            payload.extend(u32::try_from(text.len()).unwrap().to_be_bytes());
            payload.extend(text.as_bytes());
        }
        let mut frame = vec![METHOD_FRAME, 0, 0];
        frame.extend(u32::try_from(payload.len()).unwrap().to_be_bytes());
        frame.extend(payload);
        frame.push(0xCE);
        frame
    }

    /// Checks a server that answers the first words with `answer`.
    async fn check_against(answer: Vec<u8>) -> Result<(), IntakeError> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut header = [0; 8];
            stream.read_exact(&mut header).await.unwrap();
            stream.write_all(&answer).await.unwrap();
            // Stay until the client leaves.
            drop(stream.read(&mut header).await);
        });
        let endpoint = Endpoint::parse(&format!("amqp://u:S3NTINEL@127.0.0.1:{port}")).unwrap();
        let uri = endpoint.uri(Duration::from_secs(10));
        let result = check(&endpoint, &uri, Duration::from_millis(500)).await;
        server.abort();
        result
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        for old in ["3.9.29", "3.8.0", "2.99", "3.9.0-rc.1"] {
            assert!(greeting("RabbitMQ", old).is_too_old(), "{old}");
        }
        for fine in ["3.10.0", "3.13.7", "4.0.1", "10.0", "3.10.0+1", "", "odd"] {
            assert!(!greeting("RabbitMQ", fine).is_too_old(), "{fine}");
        }
        assert!(!greeting("LavinMQ", "2.0.0").is_too_old());
    }

    #[tokio::test]
    async fn an_old_broker_is_refused_in_plain_words() {
        let error = check_against(start("RabbitMQ", "3.9.13"))
            .await
            .unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("RabbitMQ 3.9.13") && text.contains("3.10 or newer"),
            "{text}"
        );
        assert!(!text.contains("S3NTINEL"));
        assert_eq!(error.verdict(), super::super::error::Verdict::GiveUp);
    }

    #[tokio::test]
    async fn a_new_broker_passes() {
        check_against(start("RabbitMQ", "3.10.8")).await.unwrap();
    }

    #[tokio::test]
    async fn what_is_no_broker_is_told_apart() {
        let web = check_against(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()).await;
        assert!(web.unwrap_err().to_string().contains("does not speak AMQP"));
        let newer = check_against(b"AMQP\x03\x01\x00\x00".to_vec()).await;
        assert!(newer.unwrap_err().to_string().contains("another version"));
        let silent = check_against(Vec::new()).await;
        assert!(matches!(silent, Err(IntakeError::TimedOut { .. })));
    }
}
