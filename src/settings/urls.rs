//! Addresses of services. Each is checked before anything connects, and shown without its secrets.

use std::fmt;

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
    /// A URL of another kind of service.
    #[error("another scheme: the scheme must be {0}")]
    Scheme(&'static str),
    /// Parameters that are settings.
    #[error("a URL without {0}")]
    Timings(&'static str),
    /// A query parameter that would have no effect.
    #[error("no query parameters but {0}")]
    Query(&'static str),
    /// How a connection to PostgreSQL is secured.
    #[error("one of disable, allow, prefer, require, verify-ca, verify-full for sslmode")]
    SslMode,
    /// The Redis database.
    #[error("the number of a Redis database after the host, such as /0")]
    Database,
}

const AMQP_SCHEMES: (&[&str], &str) = (&["amqp", "amqps"], "amqp:// or amqps://");
const REDIS_SCHEMES: (&[&str], &str) = (&["redis", "rediss"], "redis:// or rediss://");
const POSTGRES_SCHEMES: (&[&str], &str) =
    (&["postgres", "postgresql"], "postgres:// or postgresql://");
const HTTP_SCHEMES: (&[&str], &str) = (&["http", "https"], "http:// or https://");

const AMQP_SHAPE: &str = "a URL such as amqp://user:password@host:5672/vhost";
const REDIS_SHAPE: &str = "a URL such as redis://user:password@host:6379/0";
const POSTGRES_SHAPE: &str = "a URL such as postgres://user:password@host:5432/database";
const HTTP_SHAPE: &str = "a URL such as https://carrier.example/messages";

const AMQP_TIMINGS: &str = "heartbeat and connection_timeout: amqp.heartbeat_s and \
    amqp.connect_timeout_ms set them";
const POSTGRES_TIMINGS: &str = "connect_timeout: database.connect_timeout_ms sets it";

const SSL_MODES: [&str; 6] = [
    "disable",
    "allow",
    "prefer",
    "require",
    "verify-ca",
    "verify-full",
];
const POSTGRES_PARAMETERS: &str =
    "sslmode, sslrootcert, sslcert, sslkey, application_name and options";

/// Where the broker is.
#[derive(Clone, PartialEq, Eq)]
pub struct AmqpUrl(Url);

impl AmqpUrl {
    /// Reads an `amqp://` or `amqps://` URL. No vhost, or only a slash, means the vhost `/`.
    ///
    /// # Errors
    /// [`UrlError`], which says what was expected.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let mut url = split(text, AMQP_SCHEMES, AMQP_SHAPE)?;
        for (name, _) in url.query_pairs() {
            match &*name {
                "frame_max" | "channel_max" | "auth_mechanism" => {}
                "heartbeat" | "connection_timeout" => return Err(UrlError::Timings(AMQP_TIMINGS)),
                _ => return Err(UrlError::Query("frame_max, channel_max and auth_mechanism")),
            }
        }
        if matches!(url.path(), "" | "/") {
            url.set_path("/%2F");
        }
        Ok(Self(url))
    }

    /// The URL with its password.
    #[must_use]
    pub fn expose(&self) -> &Url {
        &self.0
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
        let url = split(text, REDIS_SCHEMES, REDIS_SHAPE)?;
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
    pub fn expose(&self) -> &Url {
        &self.0
    }
}

/// Where PostgreSQL is.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl(Url);

impl PostgresUrl {
    /// Reads a `postgres://` or `postgresql://` URL, with those of libpq's parameters that have an
    /// effect. The directory of a socket may stand percent-encoded in the host's place.
    ///
    /// # Errors
    /// [`UrlError`], which says what was expected.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let url = split(text, POSTGRES_SCHEMES, POSTGRES_SHAPE)?;
        for (name, value) in url.query_pairs() {
            match &*name {
                "sslmode" if !SSL_MODES.contains(&&*value) => return Err(UrlError::SslMode),
                "sslmode" | "sslrootcert" | "sslcert" | "sslkey" | "application_name"
                | "options" => {}
                "connect_timeout" => return Err(UrlError::Timings(POSTGRES_TIMINGS)),
                _ => return Err(UrlError::Query(POSTGRES_PARAMETERS)),
            }
        }
        let host = url.host_str().unwrap_or_default();
        if [host, url.path()]
            .iter()
            .all(|part| is_percent_encoded(part))
        {
            Ok(Self(url))
        } else {
            Err(UrlError::Shape(POSTGRES_SHAPE))
        }
    }

    /// The URL with its password.
    #[must_use]
    pub fn expose(&self) -> &Url {
        &self.0
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
        split(text, HTTP_SCHEMES, HTTP_SHAPE).map(Self)
    }

    /// The URL with everything in it.
    #[must_use]
    pub fn expose(&self) -> &Url {
        &self.0
    }
}

/// The checks that all addresses share. An unencoded `#`, `/` or `?` in a password ends the host
/// too early, which shows as a fragment, as an `@` behind the host, or as a port that is no number.
fn split(
    text: &str,
    (schemes, named): (&[&str], &'static str),
    shape: &'static str,
) -> Result<Url, UrlError> {
    let wrong = UrlError::Shape(shape);
    let blank = |c: char| c.is_control() || c.is_whitespace();
    if text.trim() != text || text.chars().any(char::is_control) {
        return Err(wrong);
    }
    let url = Url::parse(text).map_err(|_| wrong)?;
    if url.has_host() && !schemes.contains(&url.scheme()) {
        return Err(UrlError::Scheme(named));
    }
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

shown_without_secrets!(AmqpUrl, RedisUrl, PostgresUrl, CarrierUrl);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percent_encoded_password_and_vhost_are_read() {
        let url =
            AmqpUrl::parse("amqp://user:a%23b%24c%2Fd%40e%25f@host:5673/%2Fmsg%20lanes").unwrap();
        assert_eq!(url.to_string(), "amqp://host:5673/%2Fmsg%20lanes");
        assert_eq!(url.expose().password(), Some("a%23b%24c%2Fd%40e%25f"));
    }

    #[test]
    fn no_vhost_and_a_slash_mean_the_vhost_slash() {
        for text in ["amqp://host", "amqp://host/", "amqp://host/%2F"] {
            let url = AmqpUrl::parse(text).unwrap();
            assert_eq!(url.expose().path(), "/%2F", "{text}");
        }
        let named = AmqpUrl::parse("amqps://host/lanes").unwrap();
        assert_eq!(named.expose().path(), "/lanes");
    }

    #[test]
    fn an_unencoded_password_is_refused_with_advice_and_not_shown() {
        let passwords = [
            "S3NT#INEL",
            "1#S3NT",
            "S3NT/INEL",
            "1/S3NT",
            "S3NT?INEL",
            "12?S3NT",
            "S3NT%INEL",
            "S3NT%zz",
            "S3NT%ff",
            "a#b$c/d@e%f",
        ];
        for password in passwords {
            let refused = [
                AmqpUrl::parse(&format!("amqp://user:{password}@host/vhost")).unwrap_err(),
                RedisUrl::parse(&format!("redis://user:{password}@host/0")).unwrap_err(),
                PostgresUrl::parse(&format!("postgres://user:{password}@host/base")).unwrap_err(),
                CarrierUrl::parse(&format!("https://user:{password}@host/path")).unwrap_err(),
            ];
            for error in refused {
                let text = error.to_string();
                assert!(text.contains("percent-encoded"), "{password}: {text}");
                assert!(!text.contains("S3NT"), "{text}");
            }
        }
    }

    #[test]
    fn another_scheme_is_told_first() {
        let error = AmqpUrl::parse("http://user:S3NT@host").unwrap_err();
        assert_eq!(
            error.to_string(),
            "another scheme: the scheme must be amqp:// or amqps://"
        );
    }

    #[test]
    fn other_schemes_and_no_host_are_refused() {
        for text in [
            "",
            "host",
            "http://host",
            "amqp://",
            "amqp:///vhost",
            "amqp:host",
            "redis://host",
            " amqp://host",
            "amqp://host\n",
        ] {
            assert!(AmqpUrl::parse(text).is_err(), "{text:?}");
        }
        for text in [
            "amqp://host",
            "unix:///run/redis",
            "redis://",
            "redis://host/x",
            "redis://host?a=b",
        ] {
            assert!(RedisUrl::parse(text).is_err(), "{text:?}");
        }
        for text in [
            "ftp://host",
            "file:///etc/passwd",
            "https://",
            "host/path",
            "https://host/#x",
        ] {
            assert!(CarrierUrl::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn parameters_that_settings_own_or_nobody_reads_are_refused() {
        assert!(AmqpUrl::parse("amqp://host?frame_max=8192").is_ok());
        assert_eq!(
            AmqpUrl::parse("amqp://host?heartbeat=5"),
            Err(UrlError::Timings(AMQP_TIMINGS))
        );
        assert!(AmqpUrl::parse("amqp://host?hearbeat=5").is_err());
        assert!(RedisUrl::parse("rediss://host:6380/3?protocol=resp3").is_ok());
    }

    #[test]
    fn parameters_of_libpq_that_have_an_effect_are_taken() {
        let url = "postgresql://user:S3NT@host:6432/lane%20keeper?sslmode=verify-full\
                   &options=-c%20search_path%3Dlanes";
        let url = PostgresUrl::parse(url).unwrap();
        assert_eq!(url.to_string(), "postgresql://host:6432/lane%20keeper");
        assert!(PostgresUrl::parse("postgres://user@%2Frun%2Fpostgresql/lanes").is_ok());
        for (text, expected) in [
            (
                "postgres://host?connect_timeout=1",
                "database.connect_timeout_ms",
            ),
            ("postgres://host?sslmode=on", "verify-full"),
            ("postgres://host?password=S3NT", "no query parameters but"),
            ("postgres://host/%ff", "percent-encoded"),
            ("postgres:///base", "a URL such as"),
            ("mysql://host", "postgres:// or postgresql://"),
        ] {
            let error = PostgresUrl::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
            assert!(!error.contains("S3NT"), "{error}");
        }
    }

    #[test]
    fn no_secret_is_shown() {
        let shown = [
            format!("{:?}", AmqpUrl::parse("amqp://S3NT:S3NT@host").unwrap()),
            format!("{:?}", RedisUrl::parse("redis://:S3NT@[::1]:7/2").unwrap()),
            format!(
                "{:?}",
                PostgresUrl::parse("postgres://S3NT:S3NT@host/base?sslkey=S3NT").unwrap()
            ),
            format!(
                "{:?}",
                CarrierUrl::parse("https://S3NT:S3NT@host:8443/send?key=S3NT").unwrap()
            ),
        ];
        assert_eq!(
            shown,
            [
                "amqp://host/%2F",
                "redis://[::1]:7/2",
                "postgres://host/base",
                "https://host:8443/send"
            ]
        );
    }
}
