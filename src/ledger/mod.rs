//! The ledger: one row for each job that has ended, written before its message is acknowledged, and
//! what can be told from it afterwards.

mod batch;
mod gaps;
mod maintenance;
mod page;
mod partitions;
mod read;
mod recipient;
mod row;
mod trace;
mod write;

pub use batch::{BatchEnd, batch_ends};
pub use gaps::{has_gap, note_gaps};
pub use maintenance::{Maintenance, maintain};
pub use page::{LOOKED_AT, NEWEST, Page, Place, Wanted, page};
pub use partitions::{Maintained, Obstacle};
pub use read::{Entry, Waiting, entries, waiting};
pub use recipient::RecipientForm;
pub use trace::{Answer, Gate, Step, trace, trace_of_admitted, trace_of_waiting};
pub use write::write;
