//! Ends of tries that the store has still to record.

use std::collections::VecDeque;

use crate::dispatch::ports::Conclusion;

/// A queue with a bound: when it is full, the oldest give way, because their jobs are the least
/// likely to come again.
#[derive(Debug)]
pub(super) struct Backlog {
    waiting: VecDeque<Conclusion>,
    bound: usize,
}

impl Backlog {
    /// An empty queue for at most `bound` ends of tries.
    pub(super) fn new(bound: usize) -> Self {
        Self {
            waiting: VecDeque::new(),
            bound,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn push(&mut self, conclusion: Conclusion) {
        if self.bound == 0 {
            return;
        }
        if self.waiting.len() >= self.bound {
            self.waiting.pop_front();
        }
        self.waiting.push_back(conclusion);
    }

    /// The oldest ones, at most so many.
    pub(super) fn take(&mut self, most: usize) -> Vec<Conclusion> {
        let count = most.min(self.waiting.len());
        self.waiting.drain(..count).collect()
    }

    /// Takes back what could not be recorded this time either, as far as there is room.
    pub(super) fn put_back(&mut self, conclusions: Vec<Conclusion>) {
        let room = self.bound.saturating_sub(self.waiting.len());
        for conclusion in conclusions.into_iter().rev().take(room) {
            self.waiting.push_front(conclusion);
        }
    }
}
