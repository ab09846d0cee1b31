//! `[redis]`: the shared counters and claims.

use std::time::Duration;

use super::reader::Section;
use super::urls::RedisUrl;
use super::{Prefix, SettingsError};

/// How Redis is reached and used.
#[derive(Debug, Clone)]
pub struct Redis {
    /// Where it is.
    pub url: RedisUrl,
    /// The first part of every key.
    pub prefix: Prefix,
    /// How long one decision may wait for it: at most 45 ms, because an answer is due within 50.
    pub timeout: Duration,
    /// How long one attempt to connect may take.
    pub connect_timeout: Duration,
}

impl Redis {
    pub(super) fn read(section: &Section<'_>) -> Result<Self, SettingsError> {
        let url = section.secret("url", RedisUrl::parse)?;
        Ok(Self {
            url: url.ok_or_else(|| section.error("url", "nothing", "the URL of Redis"))?,
            prefix: section.parsed("prefix", |text| Prefix::parse(text, "._:-"))?,
            timeout: section.millis("timeout_ms", 1..=45)?,
            connect_timeout: section.millis("connect_timeout_ms", 10..=60_000)?,
        })
    }
}
