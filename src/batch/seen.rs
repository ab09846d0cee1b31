//! The recipients that a file has had so far.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};

use crate::domain::{Channel, Job};

/// A telephone number has at most 15 digits: they need 50 bits.
const DIGITS_BITS: u32 = 50;
/// Marks what is not a telephone number.
const HASHED: u64 = 1 << 63;
/// The set is kept in so many parts. They grow one after the other, so that the set never needs
/// twice its memory while it grows.
const PARTS: u64 = 16;

/// Which recipients were there, by channel, in eight bytes each. Telephone numbers are told apart
/// exactly; other recipients by 63 bits of a keyed hash, so that of a million of them two differing
/// ones are taken for one with a probability below one in ten million.
#[derive(Default)]
pub(super) struct Seen {
    parts: [HashSet<u64>; PARTS as usize],
    key: RandomState,
}

impl Seen {
    /// Remembers a job's recipient. `false`: it was there already.
    pub(super) fn insert(&mut self, job: &Job) -> bool {
        let entry = self.entry(job);
        self.parts[(entry % PARTS) as usize].insert(entry)
    }

    fn entry(&self, job: &Job) -> u64 {
        number(job.channel, &job.to)
            .unwrap_or_else(|| self.key.hash_one((job.channel, &job.to)) | HASHED)
    }
}

/// A channel and a number in E.164 form, in one number of 54 bits.
fn number(channel: Channel, to: &str) -> Option<u64> {
    if !channel.is_phone() {
        return None;
    }
    let digits: u64 = to.strip_prefix('+')?.parse().ok()?;
    (digits < 1 << DIGITS_BITS).then_some((channel as u64) << DIGITS_BITS | digits)
}
