//! The HTTP API, on real services and without any.

mod idempotency;
mod lanes;
mod lanes_command;
mod page;
mod sending;
