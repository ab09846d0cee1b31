//! How the adapter is doing, for readiness and for anybody who holds a receipt.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

use crate::dispatch::ports::Receipt;
use crate::domain::Lane;

use super::source::Source;

/// What keeps the adapter from working, or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readiness {
    /// Per lane, by [`Lane::index`]: whether every queue that accounts share is consumed from.
    pub consuming: [bool; 2],
    /// Whether there is a connection to publish on, and the broker confirms what is published.
    pub publishing: bool,
    /// What went wrong last, as long as something is not working; never a password.
    pub last_error: Option<String>,
}

impl Readiness {
    /// Whether each lane is consumed from and publishes are confirmed.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.publishing && self.consuming.iter().all(|consuming| *consuming)
    }
}

/// The state that the adapter's tasks share.
#[derive(Debug, Default)]
pub(super) struct Status {
    /// The openings of channels that are open now.
    open: RwLock<HashSet<u64>>,
    /// The last epoch given out.
    last_epoch: AtomicU64,
    /// Of the sources that are always consumed from.
    consuming: [AtomicBool; Source::FIXED.len()],
    publishing: AtomicBool,
    last_error: Mutex<Option<String>>,
}

impl Status {
    /// Opens a new epoch, of a channel.
    pub(super) fn open(&self) -> u64 {
        let epoch = self.last_epoch.fetch_add(1, Ordering::Relaxed) + 1;
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        open.insert(epoch);
        epoch
    }

    /// Closes one: its receipts are worthless from now on.
    pub(super) fn close(&self, epoch: u64) {
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        open.remove(&epoch);
    }

    pub(super) fn is_live(&self, receipt: &Receipt) -> bool {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        open.contains(&receipt.epoch)
    }

    /// Notes whether a source is consumed from; an account's own is not asked about.
    pub(super) fn consuming(&self, source: &Source, consuming: bool) {
        if let Some(place) = Source::FIXED.iter().position(|fixed| fixed == source) {
            self.consuming[place].store(consuming, Ordering::Relaxed);
        }
    }

    pub(super) fn publishing(&self, publishing: bool) {
        self.publishing.store(publishing, Ordering::Relaxed);
    }

    /// Remembers what went wrong, for whoever asks why a lane is not consumed from.
    pub(super) fn failed(&self, error: String) {
        if let Ok(mut last_error) = self.last_error.lock() {
            *last_error = Some(error);
        }
    }

    pub(super) fn readiness(&self) -> Readiness {
        let consuming = Lane::ALL.map(|lane| {
            let mut sources = Source::FIXED.iter().zip(&self.consuming);
            sources.all(|(source, consuming)| {
                source.lane() != lane || consuming.load(Ordering::Relaxed)
            })
        });
        let mut readiness = Readiness {
            consuming,
            publishing: self.publishing.load(Ordering::Relaxed),
            last_error: None,
        };
        if !readiness.is_ready() {
            let last_error = self.last_error.lock().ok();
            readiness.last_error = last_error.and_then(|error| error.clone());
        }
        readiness
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_lives_as_long_as_its_opening() {
        let status = Status::default();
        let epoch = status.open();
        let receipt = Receipt { epoch, tag: 1 };
        assert!(status.is_live(&receipt));
        let other = status.open();
        status.close(epoch);
        assert!(!status.is_live(&receipt));
        let again = status.open();
        assert!(!status.is_live(&receipt) && again != epoch);
        assert!(status.is_live(&Receipt {
            epoch: other,
            tag: 9
        }));
    }

    #[test]
    fn a_lane_is_ready_when_all_its_queues_are_consumed_from() {
        let status = Status::default();
        status.publishing(true);
        status.failed("down".to_owned());
        for source in &Source::FIXED[..3] {
            status.consuming(source, true);
        }
        let readiness = status.readiness();
        assert_eq!(readiness.consuming, [true, false]);
        assert!(!readiness.is_ready());
        assert_eq!(readiness.last_error.as_deref(), Some("down"));
        status.consuming(&Source::FIXED[3], true);
        assert!(status.readiness().is_ready());
        assert_eq!(status.readiness().last_error, None);
    }
}
