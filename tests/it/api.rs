//! The HTTP API, on real services and without any.

mod batches;
mod contract;
mod faults;
mod fuzz;
mod idempotency;
mod sending;
