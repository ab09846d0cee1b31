//! Jobs that wait in the database, and their way back into the queues.
//!
//! A job that must wait for longer than a delay queue is for becomes a row ([`fn@keep`]), written
//! before its message is acknowledged. Every worker runs a [`Releaser`], which publishes what is due
//! and deletes exactly the rows whose publish was confirmed: a crash in between publishes again, and
//! the job's claim catches the second copy.
//!
//! A *line* is what waits of one account in one lane. However many workers there are, a line has at
//! most one releaser at a time, and no more of it is released than its ceiling lets through in two
//! seconds: what waits, waits here, and not in the broker.

mod advance;
mod batch;
mod cancelled;
mod census;
mod choose;
mod groups;
mod keep;
mod line;
mod releaser;
mod row;
mod serve;
mod turn;
mod turns;

pub use batch::batch_waiting;
pub use keep::keep;
pub use releaser::Releaser;
pub use serve::CeilingOf;
