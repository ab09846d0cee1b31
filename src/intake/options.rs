//! What the broker adapter has to be told.

use std::fmt;
use std::num::NonZeroU16;
use std::time::Duration;

use crate::domain::{Lane, Region};

/// Everything that the broker adapter is set up with.
#[derive(Clone)]
pub struct AmqpOptions {
    /// `amqp://` or `amqps://` URL of the broker, with percent-encoded user name, password and
    /// virtual host. A secret.
    pub url: String,
    /// What the names of all exchanges and queues begin with.
    pub prefix: String,
    /// Unsettled messages that the broker lets each consumer have. Never 0, which AMQP takes for
    /// "without limit".
    pub prefetch: NonZeroU16,
    /// How long a shed job waits in its delay queue. An argument of that queue: it applies when
    /// the queue is first declared.
    pub shed_delay: Duration,
    /// How long a parked transactional job waits. An argument of its queue, as above.
    pub park_delay_transactional: Duration,
    /// How long a parked marketing job waits. An argument of its queue, as above.
    pub park_delay_marketing: Duration,
    /// How long the broker may take to confirm one batch of publishes.
    pub confirm_timeout: Duration,
    /// After how long without a heartbeat a peer begins to be suspect; lapin gives up after twice
    /// that. Whole seconds, at least 1.
    pub heartbeat: Duration,
    /// How long connecting may take, and each declaration after it.
    pub connect_timeout: Duration,
    /// The longest pause between two tries to connect, jitter included.
    pub longest_pause: Duration,
    /// Name of this machine, for the connections' names in the broker's lists.
    pub host_name: String,
    /// The country of telephone numbers without a country code.
    pub default_region: Option<Region>,
}

impl AmqpOptions {
    /// The names' first part where nobody has chosen another.
    pub const DEFAULT_PREFIX: &'static str = "lanekeeper";

    /// The defaults, for a broker at `url`.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        const PREFETCH: NonZeroU16 = NonZeroU16::new(1_000).expect("1000 is not 0");
        Self {
            url: url.into(),
            prefix: Self::DEFAULT_PREFIX.to_owned(),
            prefetch: PREFETCH,
            shed_delay: Duration::from_secs(1),
            park_delay_transactional: Duration::from_secs(5),
            park_delay_marketing: Duration::from_secs(30),
            confirm_timeout: Duration::from_secs(5),
            heartbeat: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(10),
            // Shorter than usual: a broker that is back must be consumed from within 10 s.
            longest_pause: Duration::from_secs(5),
            host_name: "localhost".to_owned(),
            default_region: None,
        }
    }

    /// How long a parked job of a lane waits.
    #[must_use]
    pub const fn park_delay(&self, lane: Lane) -> Duration {
        match lane {
            Lane::Transactional => self.park_delay_transactional,
            Lane::Marketing => self.park_delay_marketing,
        }
    }
}

/// Without the URL, which holds a password.
impl fmt::Debug for AmqpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AmqpOptions")
            .field("prefix", &self.prefix)
            .field("prefetch", &self.prefetch)
            .field("shed_delay", &self.shed_delay)
            .field("confirm_timeout", &self.confirm_timeout)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_does_not_show_the_password() {
        let options = AmqpOptions::new("amqp://user:S3NTINEL@host");
        assert!(!format!("{options:?}").contains("S3NTINEL"));
    }
}
