//! Batches: many messages with one request.
//!
//! What is uploaded is kept in an unnamed temporary file while it comes in, and read through as a whole
//! before any job is queued: a file in the wrong encoding, without the column `to` or cut off is refused
//! with nothing done. Then its rows are published as any publisher's, unmetered: the workers meter them.
//! How far that has come is noted in the database, and the same upload again goes on from there.

mod array;
mod content;
mod counting;
mod desk;
mod parameters;
mod read;
mod receive;
mod run;
mod store;
mod upload;
mod view;

pub use desk::{BatchDesk, BatchLimits};
pub use read::{__path_batch, __path_batch_rejections, batch, batch_rejections};
pub use upload::{__path_upload_batch, upload_batch};
