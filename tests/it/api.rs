//! The HTTP API, on real services and without any.

mod idempotency;
mod sending;
