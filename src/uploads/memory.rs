//! Uploads in this process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use super::record::{Begun, Contents, End, Note, Place, Upload, begun};
use super::{LEASE, Lease};
use crate::batch::RowError;
use crate::dispatch::ports::Clock;
use crate::domain::AccountId;
use crate::enqueueing::{Mark, Start};

type Key = (AccountId, String);

struct Entry {
    upload: Upload,
    lease: Lease,
    lease_until: Timestamp,
    rejections: Vec<RowError>,
}

/// Uploads in memory; clones are the same uploads.
#[derive(Clone)]
pub struct MemoryUploads {
    entries: Arc<Mutex<HashMap<Key, Entry>>>,
    clock: Arc<dyn Clock>,
}

impl MemoryUploads {
    /// None yet.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            entries: Arc::default(),
            clock,
        }
    }

    pub(super) fn find(&self, account: &AccountId, batch: &str) -> Option<Upload> {
        let now = self.clock.now();
        let entries = self.entries();
        let entry = entries.get(&(account.clone(), batch.to_owned()))?;
        Some(entry.seen_at(now))
    }

    pub(super) fn begin(&self, place: &Place<'_>, contents: &Contents, now: Timestamp) -> Begun {
        let clock = self.clock.now();
        let mut entries = self.entries();
        let gives_way = |entry: &Entry| entry.upload.gives_way_to(contents);
        if entries.get(&key(place)).is_some_and(gives_way) {
            entries.remove(&key(place));
        }
        if let Some(entry) = entries.get_mut(&key(place)) {
            if let Some(begun) = begun(entry.seen_at(clock), contents) {
                return begun;
            }
            entry.lease = place.lease;
            entry.lease_until = until(clock);
            return Begun::Queue(entry.upload.start);
        }
        let start = Start {
            enqueued_at: now,
            mark: Mark::default(),
        };
        let upload = Upload {
            contents: contents.clone(),
            start,
            busy_for: None,
            created_at: clock,
            updated_at: clock,
            finished_at: None,
        };
        let entry = Entry {
            upload,
            lease: place.lease,
            lease_until: until(clock),
            rejections: Vec::new(),
        };
        entries.insert(key(place), entry);
        Begun::Queue(start)
    }

    pub(super) fn note(&self, place: &Place<'_>, note: &Note<'_>) -> bool {
        let now = self.clock.now();
        let mut entries = self.entries();
        let entry = entries.get_mut(&key(place));
        let Some(entry) = entry.filter(|entry| entry.lease == place.lease) else {
            return false;
        };
        entry.upload.start.mark = note.mark;
        entry.upload.updated_at = now;
        entry.lease_until = note.end.map_or_else(|| until(now), |_| now);
        if note.end == Some(End::Finished) {
            entry.upload.finished_at = Some(now);
        }
        let last = entry.rejections.last().map_or(0, |row| row.line);
        let fresh = note.rejected.iter().filter(|row| row.line > last);
        entry.rejections.extend(fresh.cloned());
        true
    }

    pub(super) fn rejections(
        &self,
        account: &AccountId,
        batch: &str,
        behind: u64,
        most: u32,
    ) -> Vec<RowError> {
        let entries = self.entries();
        let Some(entry) = entries.get(&(account.clone(), batch.to_owned())) else {
            return Vec::new();
        };
        let rows = entry.rejections.iter().filter(|row| row.line > behind);
        rows.take(most as usize).cloned().collect()
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<Key, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for MemoryUploads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryUploads").finish_non_exhaustive()
    }
}

impl Entry {
    fn seen_at(&self, now: Timestamp) -> Upload {
        let left = self.lease_until.duration_since(now);
        let left = Duration::try_from(left).ok();
        Upload {
            busy_for: left.filter(|left| !left.is_zero()),
            ..self.upload.clone()
        }
    }
}

fn key(place: &Place<'_>) -> Key {
    (place.account.clone(), place.batch.as_str().to_owned())
}

fn until(now: Timestamp) -> Timestamp {
    now.saturating_add(LEASE).unwrap_or(now)
}
