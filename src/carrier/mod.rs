//! The carriers: who takes a message out of our hands, and what their answers mean.

pub mod breaker;
mod record;
pub mod sandbox;

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::dispatch::ports::{Accepted, Carrier, Clock, SendError};
use crate::domain::Job;
use crate::settings::{self, CarrierKind};

pub use breaker::{Allowed, Breaker};
pub use sandbox::Sandbox;

/// Why a carrier cannot be used at all.
#[derive(Debug, Error)]
pub enum CarrierError {
    /// The sandbox's record.
    #[error("carrier {carrier}: cannot open its record file: {why}")]
    Record {
        /// The carrier's name.
        carrier: Arc<str>,
        /// Why not.
        why: std::io::Error,
    },
}

/// A carrier of any kind.
pub enum AnyCarrier {
    /// Accepts everything and sends nothing.
    Sandbox(Sandbox),
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
        let _ = retry_after_cap;
        match &settings.kind {
            CarrierKind::Sandbox(sandbox) => {
                let opened = Sandbox::open(sandbox, settings.timeout, clock, random);
                opened
                    .map(Self::Sandbox)
                    .map_err(|why| CarrierError::Record {
                        carrier: Arc::clone(name),
                        why,
                    })
            }
            CarrierKind::Http(_) => todo!(),
        }
    }
}

impl Carrier for AnyCarrier {
    async fn send(&self, job: &Job, attempt: u32) -> Result<Accepted, SendError> {
        match self {
            Self::Sandbox(sandbox) => sandbox.send(job, attempt).await,
        }
    }
}
