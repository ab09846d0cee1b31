//! The breaker: a store that fails again and again is left alone, so that it cannot cost each
//! decision its time-out.

use crate::meter::StoreError;

/// Counts failures in a row.
#[derive(Debug)]
pub(super) struct Breaker {
    failures: u32,
    failures_to_open: u32,
    open: Option<StoreError>,
}

impl Breaker {
    /// A closed breaker that opens after so many failures in a row.
    pub(super) fn new(failures_to_open: u32) -> Self {
        Self {
            failures: 0,
            failures_to_open,
            open: None,
        }
    }

    /// Why the store is left alone, if it is.
    pub(super) fn open(&self) -> Option<StoreError> {
        self.open
    }

    /// A call succeeded. This does not close an open breaker: a straggler's success says less
    /// than a probe's.
    pub(super) fn worked(&mut self) {
        self.failures = 0;
    }

    /// A call failed.
    pub(super) fn failed(&mut self, why: StoreError) {
        self.failures = self.failures.saturating_add(1);
        if self.open.is_none() && self.failures >= self.failures_to_open {
            self.open = Some(why);
        }
    }

    /// A probe failed: the reason may be another one by now.
    pub(super) fn still_failing(&mut self, why: StoreError) {
        if self.open.is_some() {
            self.open = Some(why);
        }
    }

    /// A probe succeeded.
    pub(super) fn close(&mut self) {
        self.failures = 0;
        self.open = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_failures_in_a_row_open_it_and_only_a_probe_closes_it() {
        let mut breaker = Breaker::new(3);
        for _ in 0..5 {
            breaker.failed(StoreError::TimedOut);
            breaker.failed(StoreError::TimedOut);
            breaker.worked();
        }
        assert_eq!(breaker.open(), None);
        for _ in 0..3 {
            breaker.failed(StoreError::ReadOnly);
        }
        breaker.worked();
        assert_eq!(breaker.open(), Some(StoreError::ReadOnly));
        breaker.still_failing(StoreError::Denied);
        assert_eq!(breaker.open(), Some(StoreError::Denied));
        breaker.close();
        breaker.failed(StoreError::TimedOut);
        assert_eq!(breaker.open(), None);
    }
}
