//! How the adapter is doing, for readiness and for anybody who holds a receipt.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::dispatch::ports::Receipt;
use crate::domain::Lane;

use super::names::Names;

/// A queue that is consumed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// The queue's lane.
    pub lane: Lane,
    /// Whether its jobs have been admitted by an API server.
    pub admitted: bool,
}

impl Source {
    /// Every source; a [`Receipt`] holds the place in this list.
    pub const ALL: [Self; 4] = [
        Self::new(Lane::Transactional, true),
        Self::new(Lane::Transactional, false),
        Self::new(Lane::Marketing, true),
        Self::new(Lane::Marketing, false),
    ];

    const fn new(lane: Lane, admitted: bool) -> Self {
        Self { lane, admitted }
    }

    /// The queue's name.
    #[must_use]
    pub fn queue(self, names: &Names) -> lapin::types::ShortString {
        if self.admitted {
            names.lane_admitted(self.lane)
        } else {
            names.lane(self.lane)
        }
    }
}

/// What keeps the adapter from working, or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readiness {
    /// Per lane, by [`Lane::index`]: whether every queue of it is consumed from.
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
    /// Per source: which opening of its channel is open now; 0 when none is.
    epochs: [AtomicU64; Source::ALL.len()],
    /// The last epoch given out.
    last_epoch: AtomicU64,
    consuming: [AtomicBool; Source::ALL.len()],
    publishing: AtomicBool,
    last_error: Mutex<Option<String>>,
}

impl Status {
    /// Opens a new epoch for a source: receipts of earlier ones are worthless from now on.
    pub(super) fn open(&self, source: usize) -> u64 {
        let epoch = self.last_epoch.fetch_add(1, Ordering::Relaxed) + 1;
        self.epochs[source].store(epoch, Ordering::Release);
        epoch
    }

    pub(super) fn close(&self, source: usize) {
        self.consuming(source, false);
        self.epochs[source].store(0, Ordering::Release);
    }

    pub(super) fn is_live(&self, receipt: &Receipt) -> bool {
        let epoch = usize::try_from(receipt.source)
            .ok()
            .and_then(|source| self.epochs.get(source));
        epoch.is_some_and(|epoch| epoch.load(Ordering::Acquire) == receipt.epoch)
    }

    pub(super) fn consuming(&self, source: usize, consuming: bool) {
        self.consuming[source].store(consuming, Ordering::Relaxed);
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
            let mut sources = Source::ALL.iter().zip(&self.consuming);
            sources
                .all(|(source, consuming)| source.lane != lane || consuming.load(Ordering::Relaxed))
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
        let epoch = status.open(1);
        let receipt = Receipt {
            source: 1,
            epoch,
            tag: 1,
        };
        assert!(status.is_live(&receipt));
        status.close(1);
        assert!(!status.is_live(&receipt));
        let other = status.open(2);
        status.open(1);
        assert!(!status.is_live(&receipt));
        assert!(status.is_live(&Receipt {
            source: 2,
            epoch: other,
            tag: 9
        }));
        assert!(!status.is_live(&Receipt {
            source: 99,
            epoch: other,
            tag: 9
        }));
    }

    #[test]
    fn a_lane_is_ready_when_all_its_queues_are_consumed_from() {
        let status = Status::default();
        status.publishing(true);
        status.failed("down".to_owned());
        for source in 0..3 {
            status.consuming(source, true);
        }
        let readiness = status.readiness();
        assert_eq!(readiness.consuming, [true, false]);
        assert!(!readiness.is_ready());
        assert_eq!(readiness.last_error.as_deref(), Some("down"));
        status.consuming(3, true);
        assert!(status.readiness().is_ready());
        assert_eq!(status.readiness().last_error, None);
    }
}
