//! What is known of accounts: what operators have laid down for each, and for those who receive.
//!
//! Budgets, caps, ceilings and quiet hours are read as a whole and kept in memory ([`Directory`]);
//! opt-outs and holds are asked for anew with each batch of jobs ([`facts()`]). The keys of the HTTP
//! API are read as a whole as well ([`keys`]).

mod directory;
mod directory_keeper;
mod facts;
mod hold_kind;
pub mod keys;
mod policy;
mod quiet_policy;
mod reading;
mod snapshot;
mod stored;
pub mod tables;

pub use directory::Directory;
pub use directory_keeper::keep;
pub use facts::facts;
pub use hold_kind::{HoldKind, hold_name, parse_hold};
pub use policy::{AccountPolicy, CapRule};
pub use quiet_policy::{QuietAction, QuietPolicy, StoredWindows};
