//! The rows of a file as they stand there, with their places.

use super::MAX_ROW;
use super::error::FileError;
use super::lines::Lines;

/// Reads a file row by row. The text of one row is in memory at a time.
pub(super) struct RawRows {
    lines: Lines,
    text: Vec<u8>,
}

/// A row as it stands in the file, without its end.
pub(super) struct RawRow<'a> {
    /// The line where it starts, from 1.
    pub(super) line: u64,
    /// The place in the file behind it, in bytes from its start.
    pub(super) end: u64,
    /// What it says; `None` when it is longer than any row may be.
    pub(super) text: Option<&'a str>,
}

impl RawRows {
    pub(super) fn new(lines: Lines) -> Self {
        Self {
            lines,
            text: Vec::new(),
        }
    }

    /// The next row.
    ///
    /// # Errors
    /// When the file cannot be read on.
    pub(super) fn next(&mut self) -> Result<Option<RawRow<'_>>, FileError> {
        self.text.clear();
        let mut length = 0;
        let text = &mut self.text;
        let found = self.lines.read(|piece| {
            length += piece.len();
            if length <= MAX_ROW {
                text.extend_from_slice(piece);
            }
        })?;
        if !found {
            return Ok(None);
        }
        let text = std::str::from_utf8(&self.text).map_err(|_| FileError::Changed)?;
        Ok(Some(RawRow {
            line: self.lines.number,
            end: self.lines.offset,
            text: (length <= MAX_ROW).then(|| text.trim_end_matches(['\r', '\n'])),
        }))
    }

    /// The place behind the row that was read last, in bytes from the file's start.
    pub(super) fn offset(&self) -> u64 {
        self.lines.offset
    }
}
