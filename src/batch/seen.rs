//! The recipients that a file has had so far.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};

use crate::domain::{Channel, Job, recipient_key};

/// A telephone number has at most 15 digits: they need 50 bits.
const DIGITS_BITS: u32 = 50;
/// Marks what is not a telephone number.
const HASHED: u64 = 1 << 63;
/// The set is kept in so many parts. A part doubles its memory when it is full; their shares differ, so
/// that they do so one after the other, whatever the size of the set.
const PARTS: u64 = 16;
/// Shares are told in parts of two to the power of so much.
const SHARE_BITS: u32 = 16;

/// Which recipients were there, by channel, in eight bytes each. Telephone numbers are told apart
/// exactly; other recipients by 63 bits of a keyed hash, so that of a million of them two differing
/// ones are taken for one with a probability below one in ten million.
pub(super) struct Seen {
    parts: Vec<HashSet<u64>>,
    /// Where the share of each part ends.
    ends: Vec<u64>,
    key: RandomState,
}

impl Seen {
    /// Nobody yet.
    pub(super) fn new() -> Self {
        Self {
            parts: (0..PARTS).map(|_| HashSet::new()).collect(),
            ends: ends(),
            key: RandomState::new(),
        }
    }

    /// Remembers a job's recipient. `false`: it was there already.
    pub(super) fn insert(&mut self, job: &Job) -> bool {
        let entry = self.entry(job);
        let part = self.part(entry);
        self.parts[part].insert(entry)
    }

    fn part(&self, entry: u64) -> usize {
        // Consecutive numbers must fall everywhere: the golden ratio spreads them evenly.
        let spread = entry.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - SHARE_BITS);
        self.ends.partition_point(|end| *end <= spread)
    }

    fn entry(&self, job: &Job) -> u64 {
        let hashed = || {
            let key = recipient_key(job.channel, &job.to);
            self.key.hash_one((job.channel, key)) | HASHED
        };
        number(job.channel, &job.to).unwrap_or_else(hashed)
    }
}

/// Where the shares of the parts end: the last part's is nearly twice the first one's.
fn ends() -> Vec<u64> {
    let share = |part| PARTS + part;
    let all: u64 = (0..PARTS).map(share).sum();
    let sums = (0..PARTS).scan(0, |sum, part| {
        *sum += share(part);
        Some(*sum)
    });
    sums.map(|sum| (sum << SHARE_BITS) / all).collect()
}

/// A channel and a number in E.164 form, in one number of 54 bits.
fn number(channel: Channel, to: &str) -> Option<u64> {
    if !channel.is_phone() {
        return None;
    }
    let digits: u64 = to.strip_prefix('+')?.parse().ok()?;
    (digits < 1 << DIGITS_BITS).then_some((channel as u64) << DIGITS_BITS | digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_channel_and_number_has_an_entry_of_its_own() {
        let longest = "+999999999999999";
        let phones = Channel::ALL
            .into_iter()
            .filter(|channel| channel.is_phone());
        let entries: HashSet<_> = phones
            .flat_map(|channel| ["+1", "+447700900123", longest].map(|to| number(channel, to)))
            .collect();
        assert_eq!(entries.len(), 15);
        assert!(
            entries
                .iter()
                .all(|entry| entry.is_some_and(|it| it < HASHED))
        );
    }

    #[test]
    fn parts_are_filled_by_their_shares_so_that_few_double_at_a_time() {
        let seen = Seen::new();
        assert_eq!(seen.ends.last(), Some(&(1 << SHARE_BITS)));
        let mut counts = vec![0_u64; seen.parts.len()];
        for number in 0..376_000 {
            counts[seen.part(447_700_000_000 + number)] += 1;
        }
        for (part, count) in (0_u64..).zip(&counts) {
            let expected = (PARTS + part) * 1_000;
            assert!(count.abs_diff(expected) < expected / 20, "{counts:?}");
        }
        let ends: Vec<_> = [0, u64::MAX, HASHED].map(|entry| seen.part(entry)).into();
        assert!(ends.iter().all(|part| *part < seen.parts.len()));
    }

    #[test]
    fn what_is_no_number_is_hashed() {
        assert_eq!(number(Channel::Push, "447700900123"), None);
        assert_eq!(number(Channel::Sms, "+9999999999999999"), None);
    }
}
