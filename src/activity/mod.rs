//! What accounts have done in the last minute, second by second, told by all processes together.
//!
//! Metrics have no label for accounts, because their number is not bounded. This has: each process
//! keeps a [`Tally`] of the accounts that it touched in the current second, up to
//! [`Tally::ACCOUNTS`], and leaves it once a second where all can read it, for as long as
//! [`Store::KEPT`]. A job costs a few additions in memory, and Redis two commands per account,
//! process and second. It is a picture for people: what cannot be left there in its second is
//! dropped, and nothing is ever decided by it.

mod latencies;
mod memory;
mod redis;
mod report;
mod second;
mod store;
mod tally;

pub use latencies::Latencies;
pub use memory::MemorySeconds;
pub use redis::RedisSeconds;
pub use report::report;
pub use second::{Count, LaneSecond, Second};
pub use store::{Reading, SecondsError, Store, WindowNow};
pub use tally::{InHandNow, Page, Tally};
