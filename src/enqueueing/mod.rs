//! The rows of a batch, taken to the queues: by `lanekeeper enqueue` from a file, and by the HTTP
//! API from what was uploaded.
//!
//! Rows are read in chunks on a thread of their own. A window of chunks is published at a time, and
//! what became of each comes out in the file's order ([`published`]), so that whoever takes them can
//! note up to which line everything is stored. Where that is noted is the caller's affair.

mod counts;
mod flow;
mod options;
mod outlet;
mod publish;
mod reading;
mod start;

pub use counts::Counts;
pub use flow::published;
pub use options::options_digest;
pub use outlet::Outlet;
pub use publish::Done;
pub use reading::{After, Chunk, WINDOW};
pub use start::{Mark, Start};
