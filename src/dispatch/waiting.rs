//! What waits in this worker for an instant, outside the queues and the carriers' slots.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use tokio::time::Instant;

/// Things that wait, each for its own instant.
#[derive(Debug)]
pub(super) struct Waiting<T> {
    due: BinaryHeap<Reverse<(Instant, u64)>>,
    things: HashMap<u64, T>,
    next: u64,
}

impl<T> Waiting<T> {
    pub fn new() -> Self {
        Self {
            due: BinaryHeap::new(),
            things: HashMap::new(),
            next: 0,
        }
    }

    /// Lets a thing wait.
    pub fn until(&mut self, due: Instant, thing: T) {
        self.due.push(Reverse((due, self.next)));
        self.things.insert(self.next, thing);
        self.next += 1;
    }

    /// Takes the next thing that is due.
    pub fn take_due(&mut self, now: Instant) -> Option<T> {
        let &Reverse((due, key)) = self.due.peek()?;
        if due > now {
            return None;
        }
        self.due.pop();
        self.things.remove(&key)
    }

    /// When the next thing is due.
    pub fn next_due(&self) -> Option<Instant> {
        self.due.peek().map(|Reverse((due, _))| *due)
    }

    /// How many things wait.
    pub fn len(&self) -> usize {
        self.things.len()
    }

    /// Everything that waits.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.things.values()
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_support::instant;
    use super::*;

    #[test]
    fn things_come_in_the_order_of_their_instants() {
        let mut waiting = Waiting::new();
        for (at, thing) in [(30, "c"), (10, "a"), (10, "b")] {
            waiting.until(instant(at), thing);
        }
        assert_eq!(
            (waiting.take_due(instant(9)), waiting.next_due()),
            (None, Some(instant(10)))
        );
        assert_eq!(
            (waiting.take_due(instant(10)), waiting.take_due(instant(10))),
            (Some("a"), Some("b"))
        );
        assert_eq!((waiting.take_due(instant(29)), waiting.len()), (None, 1));
    }
}
