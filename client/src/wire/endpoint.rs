//! The broker's URL: read strictly, because a wrong one fails in ways that are hard to understand.

use std::fmt;
use std::time::Duration;

use lapin::uri::{AMQPScheme, AMQPUri};
use thiserror::Error;
use url::{Host, Url};

/// Frames of at most so many bytes. lapin keeps 32 frames of buffer in each direction of each
/// connection, so the broker's own default of 128 KiB would cost 8 MiB per connection.
const FRAME_MAX: u32 = 32 * 1024;

const ADVICE: &str = "percent-encode the characters # / ? @ : % and space in user name, password and \
                      virtual host, such as %23 for #: amqp://user:password@host:5672/virtual-host";

/// Why a URL cannot be the broker's. Its text never holds any part of the URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the broker's URL {problem}; {ADVICE}")]
pub struct UrlError {
    problem: &'static str,
}

const fn because(problem: &'static str) -> UrlError {
    UrlError { problem }
}

/// Where the broker is, and how to log in to it.
#[derive(Clone)]
pub struct Endpoint {
    uri: AMQPUri,
}

impl Endpoint {
    /// Reads a URL. No path and the path `/` both mean the virtual host `/`.
    ///
    /// # Errors
    /// [`UrlError`], with advice, when it cannot be read or has a part that was most likely meant
    /// to be part of the password.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let url = Url::parse(text).map_err(|_| because("cannot be read"))?;
        if !matches!(url.scheme(), "amqp" | "amqps") {
            return Err(because("must begin with amqp:// or amqps://"));
        }
        if url.cannot_be_a_base() || url.host().is_none() {
            return Err(because("names no host"));
        }
        check_encoding(text, &url)?;
        let mut uri: AMQPUri = text
            .parse()
            .map_err(|_| because("has a part that cannot be decoded"))?;
        // lapin reads only names as hosts and would take localhost for an IPv6 address.
        if let Some(Host::Ipv6(address)) = url.host() {
            uri.authority.host = address.to_string();
        }
        if uri.vhost.is_empty() {
            "/".clone_into(&mut uri.vhost);
        }
        Ok(Self { uri })
    }

    /// The same place, for a connection with this heartbeat.
    #[must_use]
    pub fn uri(&self, heartbeat: Duration) -> AMQPUri {
        let mut uri = self.uri.clone();
        let seconds = u16::try_from(heartbeat.as_secs())
            .unwrap_or(u16::MAX)
            .max(1);
        uri.query.heartbeat.get_or_insert(seconds);
        uri.query.frame_max.get_or_insert(FRAME_MAX);
        uri
    }

    /// Scheme, host, port and virtual host: what may be shown.
    #[must_use]
    pub fn address(&self) -> String {
        let scheme = match self.uri.scheme {
            AMQPScheme::AMQP => "amqp",
            AMQPScheme::AMQPS => "amqps",
        };
        let authority = &self.uri.authority;
        let vhost = match self.uri.vhost.as_str() {
            "/" => String::new(),
            vhost => format!(" (virtual host {vhost:?})"),
        };
        format!("{scheme}://{}:{}{vhost}", authority.host, authority.port)
    }
}

/// A raw `#`, `/` or `?` ends the host part early, and the rest of the password then shows up,
/// with the `@`, where a path, query or fragment should be.
fn check_encoding(text: &str, url: &Url) -> Result<(), UrlError> {
    if url.fragment().is_some() {
        return Err(because("has a # in it"));
    }
    if url.path().contains('@') || url.query().is_some_and(|query| query.contains('@')) {
        return Err(because("has an @ after its host"));
    }
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('%') {
        let is_code = after
            .as_bytes()
            .get(..2)
            .is_some_and(|code| code.iter().all(u8::is_ascii_hexdigit));
        if !is_code {
            return Err(because("has a % that begins no code"));
        }
        rest = after;
    }
    Ok(())
}

/// Without user name and password.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.address())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (String, String, String, String) {
        let uri = Endpoint::parse(text).unwrap().uri(Duration::from_secs(10));
        let user = uri.authority.userinfo;
        (user.username, user.password, uri.authority.host, uri.vhost)
    }

    #[test]
    fn encoded_parts_are_decoded() {
        let (user, password, host, vhost) =
            parts("amqp://us%40er:a%23b%24c%2Fd%40e%25f@host:5673/%2Fmsg%20lanes");
        assert_eq!((user.as_str(), host.as_str()), ("us@er", "host"));
        assert_eq!(password, "a#b$c/d@e%f");
        assert_eq!(vhost, "/msg lanes");
    }

    #[test]
    fn no_path_and_an_empty_one_mean_the_default_virtual_host() {
        for text in ["amqp://host", "amqp://host/", "amqp://host/%2F"] {
            assert_eq!(parts(text).3, "/", "{text}");
        }
    }

    #[test]
    fn every_kind_of_host_is_kept() {
        for (text, host) in [
            ("amqp://127.0.0.1:5672", "127.0.0.1"),
            ("amqp://[::1]:5672", "::1"),
            ("amqps://broker.example", "broker.example"),
        ] {
            assert_eq!(parts(text).2, host);
        }
    }

    #[test]
    fn raw_special_characters_get_advice_and_are_not_repeated() {
        for text in [
            "amqp://user:S3NTINEL#b@host:5672",
            "amqp://user:12#S3NTINEL@host:5672",
            "amqp://user:S3NTINEL/d@host:5672",
            "amqp://user:12/S3NTINEL@host:5672",
            "amqp://user:12?S3NTINEL@host:5672",
            "amqp://user:S3NTINEL%f@host:5672",
            "amqp://user:S3NTINEL%ff@host:5672",
            "http://user:S3NTINEL@host",
            "amqp:user:S3NTINEL",
            "S3NTINEL",
        ] {
            let error = Endpoint::parse(text).unwrap_err().to_string();
            assert!(error.contains("percent-encode"), "{text}: {error}");
            assert!(!error.contains("S3NTINEL"), "{text}: {error}");
        }
    }

    #[test]
    fn the_address_shows_no_credentials() {
        let endpoint = Endpoint::parse("amqps://user:S3NTINEL@host/lanes").unwrap();
        let shown = format!("{endpoint:?}");
        assert_eq!(shown, "amqps://host:5671 (virtual host \"lanes\")");
    }

    #[test]
    fn the_url_can_choose_its_own_heartbeat() {
        let uri = |text: &str| Endpoint::parse(text).unwrap().uri(Duration::from_secs(10));
        assert_eq!(uri("amqp://host").query.heartbeat, Some(10));
        assert_eq!(uri("amqp://host?heartbeat=3").query.heartbeat, Some(3));
    }
}
