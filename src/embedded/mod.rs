//! Everything outside the pipeline, in this process: for demonstrations, and for simulations under
//! paused time.

mod queues;
mod records;

pub use queues::{Delays, EmbeddedQueues, Session, Told};
pub use records::{MemoryRecords, NoRecords};
