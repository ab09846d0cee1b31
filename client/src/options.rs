//! What a publisher has to be told.

use std::fmt;
use std::time::Duration;

use crate::Prefix;

/// Everything that a publisher is set up with.
#[derive(Clone)]
pub struct Options {
    /// `amqp://` or `amqps://` URL of the broker, with percent-encoded user name, password and
    /// virtual host. A secret.
    pub url: String,
    /// What the names of the exchanges begin with: the workers' prefix. By default `lanekeeper`.
    pub prefix: String,
    /// The connection's name in the broker's lists: say what program this is.
    pub name: String,
    /// How long connecting may take. By default 10 s.
    pub connect_timeout: Duration,
    /// How long the broker may take to confirm. By default 5 s.
    pub confirm_timeout: Duration,
    /// How many jobs of [`publish_all`](crate::Publisher::publish_all) may be unconfirmed at a
    /// time. By default 256; at least 1.
    pub window: usize,
}

impl Options {
    /// The defaults, for a broker at `url`.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            prefix: Prefix::DEFAULT.to_owned(),
            name: "lanekeeper-client".to_owned(),
            connect_timeout: Duration::from_secs(10),
            confirm_timeout: Duration::from_secs(5),
            window: 256,
        }
    }
}

/// Without the URL, which holds a password.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("prefix", &self.prefix)
            .field("name", &self.name)
            .field("connect_timeout", &self.connect_timeout)
            .field("confirm_timeout", &self.confirm_timeout)
            .field("window", &self.window)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_does_not_show_the_password() {
        let options = Options::new("amqp://user:S3NTINEL@host");
        assert!(!format!("{options:?}").contains("S3NTINEL"));
    }
}
