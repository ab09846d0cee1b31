//! The pipeline: take, slot, meter, send, settle.

pub mod ports;
