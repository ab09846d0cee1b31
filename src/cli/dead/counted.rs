//! Messages that were counted before somebody is asked about them.

use std::collections::BTreeMap;

use crate::intake::dead::Digest;

/// How many there are of each body. What was not there to be counted is never among them.
#[derive(Debug, Default)]
pub(super) struct Counted(BTreeMap<Digest, u64>);

impl Counted {
    /// Counts a message.
    pub(super) fn add(&mut self, digest: Digest) {
        *self.0.entry(digest).or_default() += 1;
    }

    /// Takes a message out, if it is one that was counted and not taken yet.
    pub(super) fn take(&mut self, digest: Digest) -> bool {
        let Some(copies) = self.0.get_mut(&digest) else {
            return false;
        };
        *copies -= 1;
        if *copies == 0 {
            self.0.remove(&digest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_taken_as_often_as_it_was_counted() {
        let [one, two, new] = [b"1", b"2", b"3"].map(|body| Digest::of(body));
        let mut counted = Counted::default();
        for digest in [one, two, two] {
            counted.add(digest);
        }
        let taken = [two, new, one, two, two, one].map(|digest| counted.take(digest));
        assert_eq!(taken, [true, false, true, true, false, false]);
    }
}
