//! `[api]`: the HTTP API.

use std::net::SocketAddr;
use std::time::Duration;

use super::SettingsError;
use super::reader::Section;

/// How the HTTP API serves.
#[derive(Debug, Clone, Copy)]
pub struct Api {
    /// Address and port.
    pub listen: SocketAddr,
    /// How long the broker may take to confirm a message before its sender is told that nobody
    /// knows.
    pub confirm_timeout: Duration,
    /// Requests that one key may make per second; `None`: any number.
    pub requests_per_second: Option<u32>,
    /// Connections at one time.
    pub max_connections: usize,
    /// The largest upload of a batch, in bytes.
    pub batch_largest: u64,
    /// Uploads of batches at one time.
    pub batch_uploads: usize,
    /// Those of one account among them.
    pub batch_uploads_per_account: usize,
    /// How long the first answer to an `Idempotency-Key` is kept.
    pub idempotency_life: Duration,
}

impl Api {
    pub(super) fn read(section: &Section<'_>) -> Result<Self, SettingsError> {
        let expected = "an IP address and a port, such as 127.0.0.1:8080 or [::]:8080";
        let requests: u32 = section.count("requests_per_second", 0..=1_000_000)?;
        Ok(Self {
            listen: section.parsed("listen", |text| text.parse().map_err(|_| expected))?,
            confirm_timeout: section.millis("confirm_timeout_ms", 50..=1_200)?,
            requests_per_second: (requests > 0).then_some(requests),
            max_connections: section.count("max_connections", 1..=100_000)?,
            batch_largest: section.number("batch_max_mib", 1..=65_536)? << 20,
            batch_uploads: section.count("batch_uploads", 1..=64)?,
            batch_uploads_per_account: section.count("batch_uploads_per_account", 1..=64)?,
            idempotency_life: section.seconds("idempotency_life_s", 60..=2_592_000)?,
        })
    }
}
