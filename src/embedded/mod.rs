//! Everything outside the pipeline, in this process: for demonstrations, and for simulations under
//! paused time.

mod no_records;
mod queues;
mod records;

pub use no_records::NoRecords;
pub use queues::{Delays, EmbeddedQueues, Session, Told};
pub use records::MemoryRecords;
