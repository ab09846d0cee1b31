//! `[amqp]`: the broker.

use std::time::Duration;

use super::reader::Section;
use super::urls::AmqpUrl;
use super::{Prefix, SettingsError};

/// How the broker is reached and used.
#[derive(Debug, Clone)]
pub struct Amqp {
    /// Where it is.
    pub url: AmqpUrl,
    /// The first part of every exchange's and queue's name.
    pub prefix: Prefix,
    /// Unsettled jobs that each lane may have in one worker; never 0, which means no limit.
    pub prefetch: u16,
    /// How long a publish may wait for its confirm.
    pub confirm_timeout: Duration,
    /// The heartbeat interval, in whole seconds.
    pub heartbeat: Duration,
    /// How long one attempt to connect may take.
    pub connect_timeout: Duration,
}

impl Amqp {
    pub(super) fn read(section: &Section<'_>) -> Result<Self, SettingsError> {
        let url = section.secret("url", AmqpUrl::parse)?;
        Ok(Self {
            url: url.ok_or_else(|| section.error("url", "nothing", "the broker's URL"))?,
            prefix: section.parsed("prefix", |text| Prefix::parse(text, "._-"))?,
            prefetch: section.count("prefetch", 1..=65_535)?,
            confirm_timeout: section.millis("confirm_timeout_ms", 100..=60_000)?,
            heartbeat: section.seconds("heartbeat_s", 1..=600)?,
            connect_timeout: section.millis("connect_timeout_ms", 100..=60_000)?,
        })
    }

    /// The URL to connect to, with its password, the heartbeat and the time-out in it.
    #[must_use]
    pub fn connection_url(&self) -> String {
        self.url.expose(self.heartbeat, self.connect_timeout)
    }
}
