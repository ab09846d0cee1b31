//! The HTTP API, on real services and without any.

mod batches;
mod idempotency;
mod sending;
