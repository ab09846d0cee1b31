//! The HTTP API, on real services and without any.

mod idempotency;
mod lanes;
mod page;
mod sending;
