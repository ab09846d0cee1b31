//! The rows of a file as they stand there, with their places.

use super::MAX_ROW;
use super::error::FileError;
use super::lines::{Lines, Place};
use super::quoting::Quoting;

/// Reads a file row by row. The text of one row is in memory at a time.
pub(super) struct RawRows {
    lines: Lines,
    /// How a row begins; `None` where each line is a row.
    quoting: Option<Quoting>,
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
    pub(super) fn new(lines: Lines, quoting: Option<Quoting>) -> Self {
        Self {
            lines,
            quoting,
            text: Vec::new(),
        }
    }

    /// The next row.
    ///
    /// # Errors
    /// When the file cannot be read on, or a quoted cell takes in other rows.
    pub(super) fn next(&mut self) -> Result<Option<RawRow<'_>>, FileError> {
        let line = self.lines.place.lines + 1;
        let mut row = Assembly {
            quoting: self.quoting,
            length: 0,
            text: &mut self.text,
        };
        row.text.clear();
        if !self.lines.read(|piece| row.add(piece))? {
            return Ok(None);
        }
        while row.quoting.is_some_and(Quoting::is_open) {
            if !self.lines.read(|piece| row.add(piece))? {
                return Err(FileError::UnclosedQuote { line });
            }
        }
        let several_lines = self.lines.place.lines > line;
        // Where the cell was meant to end cannot be known, nor which lines are rows.
        if several_lines && row.quoting.is_some_and(|quoting| quoting.misplaced) {
            return Err(FileError::UnclosedQuote { line });
        }
        Ok(Some(RawRow {
            line,
            end: self.lines.place.offset,
            text: row.finish()?,
        }))
    }

    /// The place behind the row that was read last.
    pub(super) fn place(&self) -> Place {
        self.lines.place
    }
}

/// A row whose lines are being read.
struct Assembly<'a> {
    quoting: Option<Quoting>,
    length: usize,
    text: &'a mut Vec<u8>,
}

impl<'a> Assembly<'a> {
    fn add(&mut self, piece: &[u8]) {
        if let Some(quoting) = &mut self.quoting {
            quoting.follow(piece);
        }
        self.length += piece.len();
        if self.length <= MAX_ROW {
            self.text.extend_from_slice(piece);
        }
    }

    /// The text without the row's end; `None` when it is too long.
    fn finish(self) -> Result<Option<&'a str>, FileError> {
        if self.length > MAX_ROW {
            return Ok(None);
        }
        let text = std::str::from_utf8(self.text).map_err(|_| FileError::Changed)?;
        Ok(Some(text.trim_end_matches(['\r', '\n'])))
    }
}
