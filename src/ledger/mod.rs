//! The ledger: one row for each job that has ended, written before its message is acknowledged, and
//! what can be told from it afterwards.

mod batch;
mod maintenance;
mod partitions;
mod read;
mod recipient;
mod row;
mod trace;
mod write;

pub use batch::{BatchEnd, batch_ends};
pub use maintenance::{Maintenance, maintain};
pub use partitions::{Maintained, Obstacle};
pub use read::{Entry, Waiting, entries, waiting};
pub use recipient::RecipientForm;
pub use trace::{Answer, Gate, Step, trace};
pub use write::write;
