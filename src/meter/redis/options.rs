//! Where the shared counters are and how long to wait for them.

use std::fmt;
use std::time::Duration;

use thiserror::Error;

/// Why options cannot be right. Never quotes the URL: it may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RedisOptionsError {
    /// Not a URL that Redis can be reached by.
    #[error("expected a URL like redis://host:6379/0 or rediss://user:password@host:6379/0")]
    Url,
    /// The prefix would break the keys' hash tags.
    #[error("a key prefix has no {{ and no }}")]
    Prefix,
    /// A time-out of zero would let no decision reach the store.
    #[error("time-outs are longer than zero")]
    Timeout,
}

/// How to reach and use the shared counters.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisOptions {
    /// `redis://` or `rediss://`; may hold a password.
    pub url: String,
    /// What every key begins with, so that several deployments can share a server.
    pub prefix: String,
    /// The longest wait for one decision. With what follows it must stay below the 50 ms within
    /// which a job that was admitted starts.
    pub timeout: Duration,
    /// The longest wait for a connection when no decision waits for it.
    pub connect_timeout: Duration,
    /// How long a claim is kept after its try's deadline; zero turns claims off.
    pub claim_life: Duration,
}

impl RedisOptions {
    /// The usual options for a server.
    #[must_use]
    pub fn at(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            prefix: "lanekeeper:".to_owned(),
            timeout: Duration::from_millis(35),
            connect_timeout: Duration::from_millis(500),
            claim_life: Duration::from_secs(15 * 60),
        }
    }

    pub(super) fn check(&self) -> Result<(), RedisOptionsError> {
        if self.prefix.contains(['{', '}']) {
            return Err(RedisOptionsError::Prefix);
        }
        if self.timeout.is_zero() || self.connect_timeout.is_zero() {
            return Err(RedisOptionsError::Timeout);
        }
        Ok(())
    }
}

/// Without the URL's user and password.
impl fmt::Debug for RedisOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = url::Url::parse(&self.url).ok().and_then(|url| {
            Some(format!(
                "{}:{}",
                url.host_str()?,
                url.port().unwrap_or(6379)
            ))
        });
        f.debug_struct("RedisOptions")
            .field("host", &host)
            .field("prefix", &self.prefix)
            .field("timeout", &self.timeout)
            .field("connect_timeout", &self.connect_timeout)
            .field("claim_life", &self.claim_life)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::RedisStore;

    #[test]
    fn no_text_about_options_holds_their_password() {
        for url in [
            "redis://user:S3NTINEL@host:1/0",
            "redis://:S3NTINEL@:bad",
            "S3NTINEL",
            "amqp://:S3NTINEL@host",
        ] {
            let options = RedisOptions::at(url);
            let text = match RedisStore::new(options.clone()) {
                Ok(store) => format!("{store:?}"),
                Err(error) => format!("{error} {error:?}"),
            };
            assert!(!format!("{options:?}{text}").contains("S3NTINEL"), "{text}");
        }
    }

    #[test]
    fn options_that_cannot_work_are_refused() {
        let refused = |options: RedisOptions| RedisStore::new(options).unwrap_err();
        let good = RedisOptions::at("redis://localhost");
        assert_eq!(
            refused(RedisOptions::at("nonsense")),
            RedisOptionsError::Url
        );
        let tagged = RedisOptions {
            prefix: "a{b".to_owned(),
            ..good.clone()
        };
        assert_eq!(refused(tagged), RedisOptionsError::Prefix);
        let hasty = RedisOptions {
            timeout: Duration::ZERO,
            ..good
        };
        assert_eq!(refused(hasty), RedisOptionsError::Timeout);
    }
}
