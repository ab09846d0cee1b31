//! Files of messages, comma-separated or JSON lines, read into jobs.
//!
//! A file is first read through as a whole ([`BatchFile::open`]): is it UTF-8 text, which format is
//! it, is its structure sound? What is wrong with it then is found before any job is made. Its rows
//! ([`BatchFile::rows`]) are read one at a time, and each is judged by itself.
//!
//! A [`TableFile`] is a CSV file of something else than messages, read with the same care.

mod cells;
mod columns;
mod csv;
mod error;
mod file;
mod header;
mod json;
mod lines;
mod number;
mod quoting;
mod raw_rows;
mod rows;
mod seen;
mod shape;
mod shared;
mod stamp;
mod survey;
mod table;
mod template;

pub use crate::digest::Digest;
pub use error::{FileError, RowError};
pub use file::{BatchFile, Format, is_standard_input};
pub use rows::{Row, RowOptions, RowOutcome, Rows};
pub use shared::{Batch, BatchId};
pub use table::{TableColumns, TableError, TableFile, TableRow, TableRows};

/// The longest row, in bytes of the file. A longer one is rejected, and the file read on behind it.
pub const MAX_ROW: usize = 256 * 1024;
