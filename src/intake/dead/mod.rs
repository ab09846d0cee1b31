//! The dead queue, looked into from outside a worker.
//!
//! A queue cannot be read without taking its messages. They are consumed, left unacknowledged, and
//! returned in their order when all were seen and the channel closes. Each return raises a message's
//! delivery count, and brokers from 4.0 on drop a message after 20 returns; so one that has returned
//! often is moved: published again to the end of the queue, and acknowledged when that is confirmed.
//!
//! Nothing is acknowledged before it is stored elsewhere or meant to go. Whatever interrupts a pass,
//! its messages are in the queue again, and at the worst one that was replayed is there too.

mod answers;
mod digest;
mod error;
mod glance;
mod letter;
mod pass;
mod reader;
mod windows;

pub use digest::Digest;
pub use error::DeadError;
pub use letter::{Facts, Letter};
pub use pass::{End, Fate};
pub use reader::{DeadQueue, Passed};
