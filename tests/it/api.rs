//! The HTTP API, on real services and without any.

mod batches;
mod caps;
mod contract;
mod dry_run;
mod faults;
mod fuzz;
mod holds;
mod idempotency;
mod lanes;
mod lanes_command;
mod lanes_hot;
mod messages;
mod own_account;
mod page;
mod preview;
mod resources;
mod sending;
mod suppressions;
