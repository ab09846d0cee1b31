//! (to be written)
pub mod enqueue;
