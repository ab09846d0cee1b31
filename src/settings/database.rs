//! `[database]`: PostgreSQL, where there is one.

use std::time::Duration;

use super::SettingsError;
use super::reader::Section;
use super::urls::PostgresUrl;

/// How the database is reached and used.
#[derive(Debug, Clone)]
pub struct Database {
    /// Where it is.
    pub url: PostgresUrl,
    /// How long one attempt to connect may take.
    pub connect_timeout: Duration,
    /// How long one question may take, the wait for a connection included, before it has failed.
    pub timeout: Duration,
    /// Connections of this process, at most.
    pub connections: u32,
    /// Whether a worker brings the schema up to date before it starts.
    pub migrate: bool,
}

impl Database {
    /// `None` where no URL is given: then there is no database.
    pub(super) fn read(section: &Section<'_>) -> Result<Option<Self>, SettingsError> {
        let url = section.secret("url", PostgresUrl::parse)?;
        let connect_timeout = section.millis("connect_timeout_ms", 10..=60_000)?;
        let timeout = section.millis("timeout_ms", 50..=10_000)?;
        let connections = section.count("connections", 2..=100)?;
        let migrate = section.flag("migrate")?;
        // Whoever wants migrations means to have a database: a worker that ran without its gates would
        // be a nasty surprise.
        if url.is_none() && migrate {
            return Err(section.error("migrate", "true", "database.url beside it"));
        }
        Ok(url.map(|url| Self {
            url,
            connect_timeout,
            timeout,
            connections,
            migrate,
        }))
    }
}
