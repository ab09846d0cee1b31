//! The pipeline: take, slot, meter, send, settle.

mod ceilings;
mod in_hand;
mod lane_queue;
mod pace;
pub mod ports;
mod retry;
mod slots;
#[cfg(test)]
mod test_support;

pub use retry::{Retry, RetryPolicy};
pub use slots::{Slots, TooFewSlots};
