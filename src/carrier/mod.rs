//! The carriers: who takes a message out of our hands, and what their answers mean.

pub mod breaker;
mod classify;
pub mod http;
mod record;
mod reference;
mod retry_after;
pub mod sandbox;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::dispatch::ports::{Accepted, Carrier, Clock, SendError};
use crate::domain::Job;
use crate::settings::{self, CarrierKind};

pub use breaker::{Allowed, Breaker, reached};
pub use http::Http;
pub use sandbox::Sandbox;

/// Why a carrier cannot be used at all.
#[derive(Debug, Error)]
pub enum CarrierError {
    /// The sandbox's record.
    #[error("cannot open {} (carriers.{carrier}.sandbox_record_file): {why}", .path.display())]
    Record {
        /// The carrier's name.
        carrier: Arc<str>,
        /// The file.
        path: PathBuf,
        /// Why not.
        why: std::io::Error,
    },
    /// The HTTP client.
    #[error("carrier {carrier}: no HTTP client can be made: are there root certificates?")]
    Client {
        /// The carrier's name.
        carrier: Arc<str>,
    },
}

/// A carrier of any kind.
pub enum AnyCarrier {
    /// Accepts everything and sends nothing.
    Sandbox(Sandbox),
    /// Posts each job to a URL.
    Http(Http),
}

impl AnyCarrier {
    /// The carrier that the settings describe. `retry_after_cap` bounds how long it may ask to be
    /// left alone; `random` decides which of a sandbox's tries fail.
    ///
    /// # Errors
    /// [`CarrierError`], when it could never take anything.
    pub fn open(
        name: &Arc<str>,
        settings: &settings::Carrier,
        retry_after_cap: Duration,
        clock: Arc<dyn Clock>,
        random: fastrand::Rng,
    ) -> Result<Self, CarrierError> {
        let (timeout, carrier) = (settings.timeout, Arc::clone(name));
        match &settings.kind {
            CarrierKind::Sandbox(sandbox) => Sandbox::open(sandbox, timeout, clock, random)
                .map(Self::Sandbox)
                .map_err(|why| CarrierError::Record {
                    carrier,
                    path: sandbox.record_file.clone().unwrap_or_default(),
                    why,
                }),
            CarrierKind::Http(http) => Http::open(
                http,
                settings.max_in_flight,
                timeout,
                retry_after_cap,
                clock,
            )
            .map(Self::Http)
            .map_err(|_| CarrierError::Client { carrier }),
        }
    }
}

impl Carrier for AnyCarrier {
    async fn send(&self, job: &Job, attempt: u32) -> Result<Accepted, SendError> {
        match self {
            Self::Sandbox(sandbox) => sandbox.send(job, attempt).await,
            Self::Http(http) => http.send(job, attempt).await,
        }
    }
}
