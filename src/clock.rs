//! The wall clock of a real process.

use jiff::Timestamp;

use crate::dispatch::ports::Clock;

/// This machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}
