//! From the broker's queues to decoded jobs.

pub mod decode;
