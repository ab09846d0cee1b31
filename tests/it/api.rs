//! The HTTP API, on real services and without any.

mod batches;
mod caps;
mod dry_run;
mod holds;
mod idempotency;
mod messages;
mod own_account;
mod preview;
mod resources;
mod sending;
mod suppressions;
