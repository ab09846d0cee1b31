//! The sandbox: a carrier that accepts everything and sends nothing.

use std::borrow::Cow;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::record::Record;
use crate::dispatch::ports::{Accepted, Clock, SendError, SendVerdict};
use crate::domain::Job;
use crate::settings;

/// How long a throttled try asks to be left alone, like a carrier that counts by the second.
const THROTTLE_FOR: Duration = Duration::from_secs(1);

/// A carrier that only pretends, as slow and as unreliable as it is told to be.
pub struct Sandbox {
    latency: Duration,
    timeout: Duration,
    fail_percent: u8,
    throttle_percent: u8,
    random: Mutex<fastrand::Rng>,
    record: Option<Record>,
}

impl Sandbox {
    /// A sandbox; `random` decides which tries fail.
    ///
    /// # Errors
    /// When the file for the record cannot be opened.
    pub fn open(
        settings: &settings::Sandbox,
        timeout: Duration,
        clock: Arc<dyn Clock>,
        random: fastrand::Rng,
    ) -> io::Result<Self> {
        let record = settings.record_file.as_deref();
        Ok(Self {
            latency: settings.latency,
            timeout,
            fail_percent: settings.fail_percent,
            throttle_percent: settings.throttle_percent,
            random: Mutex::new(random),
            record: record.map(|path| Record::open(path, clock)).transpose()?,
        })
    }

    pub(super) async fn send(&self, job: &Job, attempt: u32) -> Result<Accepted, SendError> {
        if !self.latency.is_zero() {
            tokio::time::sleep(self.latency.min(self.timeout)).await;
            if self.latency > self.timeout {
                return Err(failure(
                    SendVerdict::Unknown,
                    "the sandbox did not answer in time",
                ));
            }
        }
        self.draw()?;
        if let Some(record) = &self.record {
            // A failed write may have left half a line: whether the record has the job is unknown.
            record.append(job, attempt).map_err(|error| {
                let detail = format!("the sandbox cannot write its record: {}", error.kind());
                failure(SendVerdict::Unknown, detail)
            })?;
        }
        Ok(Accepted::default())
    }

    /// Decides whether this try is one of those that fail.
    fn draw(&self) -> Result<(), SendError> {
        if self.fail_percent == 0 && self.throttle_percent == 0 {
            return Ok(());
        }
        let drawn = self
            .random
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .u8(0..100);
        if drawn < self.fail_percent {
            return Err(failure(
                SendVerdict::Unknown,
                "the sandbox was told to fail",
            ));
        }
        if drawn < self.fail_percent + self.throttle_percent {
            return Err(SendError {
                retry_after: Some(THROTTLE_FOR),
                ..failure(SendVerdict::Throttled, "the sandbox was told to throttle")
            });
        }
        Ok(())
    }
}

fn failure(verdict: SendVerdict, detail: impl Into<Cow<'static, str>>) -> SendError {
    SendError {
        verdict,
        retry_after: None,
        detail: detail.into(),
    }
}
