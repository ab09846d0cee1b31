//! Addresses of services. Each is checked before anything connects, and shown without its secrets.

use std::fmt;
use std::time::Duration;

use thiserror::Error;
use url::Url;

/// Why a text is not the address it should be. No variant holds any part of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum UrlError {
    /// Not a URL at all, or cut in the wrong places by a character of the password.
    #[error(
        "{0}, with every character of user name and password other than letters, digits and \
         - . _ ~ percent-encoded (# is %23, / is %2F, @ is %40, % is %25)"
    )]
    Shape(&'static str),
    /// lapin reads an IPv6 address in a URL as no host, and would connect to this machine.
    #[error("a host name or IPv4 address: IPv6 addresses are not read from AMQP URLs")]
    Ipv6,
    /// The heartbeat and the connection's time-out are settings.
    #[error(
        "a URL without heartbeat and connection_timeout: amqp.heartbeat_s and amqp.connect_timeout_ms set them"
    )]
    Timings,
    /// A query parameter that would have no effect.
    #[error("no query parameters but {0}")]
    Query(&'static str),
    /// The Redis database.
    #[error("the number of a Redis database after the host, such as /0")]
    Database,
}

const AMQP_SHAPE: &str = "a URL such as amqp://user:password@host:5672/vhost";
const REDIS_SHAPE: &str = "a URL such as redis://user:password@host:6379/0";
const HTTP_SHAPE: &str = "a URL such as https://carrier.example/messages";

/// Where the broker is.
#[derive(Clone, PartialEq, Eq)]
pub struct AmqpUrl(Url);

impl AmqpUrl {
    /// Reads an `amqp://` or `amqps://` URL. No vhost, or only a slash, means the vhost `/`.
    ///
    /// # Errors
    /// [`UrlError`], which says what was expected.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let mut url = split(text, &["amqp", "amqps"], AMQP_SHAPE)?;
        if matches!(url.host_str(), Some(host) if host.starts_with('[')) {
            return Err(UrlError::Ipv6);
        }
        for (name, _) in url.query_pairs() {
            match &*name {
                "frame_max" | "channel_max" | "auth_mechanism" => {}
                "heartbeat" | "connection_timeout" => return Err(UrlError::Timings),
                _ => return Err(UrlError::Query("frame_max, channel_max and auth_mechanism")),
            }
        }
        if matches!(url.path(), "" | "/") {
            url.set_path("/%2F");
        }
        Ok(Self(url))
    }

    /// The URL with its password and with these timings in the form that lapin reads.
    #[must_use]
    pub fn expose(&self, heartbeat: Duration, connect_timeout: Duration) -> String {
        let mut url = self.0.clone();
        url.query_pairs_mut()
            .append_pair("heartbeat", &heartbeat.as_secs().to_string())
            .append_pair(
                "connection_timeout",
                &connect_timeout.as_millis().to_string(),
            );
        url.into()
    }
}

/// Where Redis is.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisUrl(Url);

impl RedisUrl {
    /// Reads a `redis://` or `rediss://` URL.
    ///
    /// # Errors
    /// [`UrlError`], which says what was expected.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let url = split(text, &["redis", "rediss"], REDIS_SHAPE)?;
        if url.query_pairs().any(|(name, _)| name != "protocol") {
            return Err(UrlError::Query("protocol"));
        }
        let database = url.path().trim_start_matches('/');
        if !database.is_empty() && database.parse::<u16>().is_err() {
            return Err(UrlError::Database);
        }
        Ok(Self(url))
    }

    /// The URL with its password.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.as_str()
    }
}

/// Where an HTTP carrier takes messages.
#[derive(Clone, PartialEq, Eq)]
pub struct CarrierUrl(Url);

impl CarrierUrl {
    /// Reads an `http://` or `https://` URL.
    ///
    /// # Errors
    /// [`UrlError`], which says what was expected.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        split(text, &["http", "https"], HTTP_SHAPE).map(Self)
    }

    /// The URL with everything in it.
    #[must_use]
    pub fn expose(&self) -> &Url {
        &self.0
    }
}

/// The checks that all addresses share. An unencoded `#`, `/` or `?` in a password ends the host
/// too early, which shows as a fragment, as an `@` behind the host, or as a port that is no number.
fn split(text: &str, schemes: &[&str], shape: &'static str) -> Result<Url, UrlError> {
    let wrong = UrlError::Shape(shape);
    let blank = |c: char| c.is_control() || c.is_whitespace();
    if text.trim() != text || text.chars().any(char::is_control) {
        return Err(wrong);
    }
    let url = Url::parse(text).map_err(|_| wrong)?;
    let host = url.host_str().unwrap_or_default();
    let behind_host = || url.path().contains('@') || url.query().unwrap_or_default().contains('@');
    let usable = schemes.contains(&url.scheme())
        && !host.is_empty()
        && !host.contains(blank)
        && url.fragment().is_none()
        && !behind_host()
        && is_percent_encoded(url.username())
        && url.password().is_none_or(is_percent_encoded);
    if usable { Ok(url) } else { Err(wrong) }
}

/// Whether each `%` begins an encoded byte, and the bytes are UTF-8 when decoded.
fn is_percent_encoded(text: &str) -> bool {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let hex = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        match (hex(bytes.next()), hex(bytes.next())) {
            (Some(high), Some(low)) => decoded.extend(u8::try_from(high * 16 + low)),
            _ => return false,
        }
    }
    String::from_utf8(decoded).is_ok()
}

/// Scheme, host, port and path: without user information, and without the query, where some
/// services keep their keys.
fn shown(url: &Url, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(
        f,
        "{}://{}",
        url.scheme(),
        url.host_str().unwrap_or_default()
    )?;
    if let Some(port) = url.port() {
        write!(f, ":{port}")?;
    }
    f.write_str(url.path())
}

macro_rules! shown_without_secrets {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                shown(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                shown(&self.0, f)
            }
        }
    )*};
}

shown_without_secrets!(AmqpUrl, RedisUrl, CarrierUrl);
