//! What the beginning of a CSV file tells: how cells are separated, and which columns there are.

use std::sync::Arc;

use super::cells::{Cells, trim};
use super::columns::{Columns, fit};
use super::error::FileError;
use super::lines::{Lines, Place};
use super::quoting::Quoting;
use super::raw_rows::RawRows;
use super::rows::Notation;

/// The separators that are told from the header line; where several fit, the first is taken.
const DELIMITERS: [u8; 3] = *b",;\t";
/// What a first line may name as separator besides.
const NAMED_ONLY: &[u8] = b"|:";

/// How a CSV file is to be read.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) delimiter: u8,
    columns: Arc<Columns>,
    /// Where the rows begin.
    behind: Place,
}

/// The header line of a CSV file, with the separator that fits best.
pub(super) struct HeaderLine {
    pub(super) delimiter: u8,
    pub(super) cells: Cells,
    /// Its place, from 1.
    pub(super) line: u64,
    /// Where the rows begin.
    pub(super) behind: Place,
}

/// How well a header's cells fit: whether a column is there that must be, and how many there are.
pub(super) type Fit = (bool, usize);

impl HeaderLine {
    /// Reads the beginning of a file; `lines` gives its lines from a place on.
    ///
    /// # Errors
    /// When there is no header line, or none that can be read.
    pub(super) fn read(
        start: Place,
        lines: impl Fn(Place) -> Lines,
        fit: impl Fn(&Cells) -> Fit,
    ) -> Result<Self, FileError> {
        let mut first = RawRows::new(lines(start), None);
        let (line, _) = first_row(&mut first)?;
        let (delimiters, start) = match named_delimiter(&line) {
            Some(delimiter) => (vec![delimiter], first.place()),
            None => (DELIMITERS.to_vec(), start),
        };
        let attempts = delimiters.into_iter().map(|delimiter| {
            let mut rows = RawRows::new(lines(start), Some(Quoting::new(delimiter)));
            let (header, line) = first_row(&mut rows)?;
            let mut cells = Cells::new(delimiter);
            cells.split(&header);
            Ok(Self {
                delimiter,
                cells,
                line,
                behind: rows.place(),
            })
        });
        best(attempts, fit)
    }
}

impl Header {
    /// Reads the beginning of a file; `lines` gives its lines from a place on.
    ///
    /// # Errors
    /// When there is no header line, or none that can be used.
    pub(super) fn read(start: Place, lines: impl Fn(Place) -> Lines) -> Result<Self, FileError> {
        let header = HeaderLine::read(start, lines, fit)?;
        Ok(Self {
            delimiter: header.delimiter,
            columns: Arc::new(Columns::parse(&header.cells, header.line)?),
            behind: header.behind,
        })
    }

    /// The rows behind it.
    pub(super) fn rows(&self, lines: impl Fn(Place) -> Lines) -> RawRows {
        RawRows::new(lines(self.behind), Some(Quoting::new(self.delimiter)))
    }

    pub(super) fn notation(&self) -> Notation {
        Notation::Csv {
            columns: Arc::clone(&self.columns),
            cells: Box::new(Cells::new(self.delimiter)),
        }
    }
}

/// The attempt that fits best; of those that fit alike the first.
fn best(
    attempts: impl Iterator<Item = Result<HeaderLine, FileError>>,
    fit: impl Fn(&Cells) -> Fit,
) -> Result<HeaderLine, FileError> {
    let mut best: Option<HeaderLine> = None;
    let mut failed = FileError::Empty;
    for attempt in attempts {
        let fits_better = |it: &HeaderLine, than: &HeaderLine| fit(&than.cells) < fit(&it.cells);
        match attempt {
            Ok(attempt) if best.as_ref().is_none_or(|it| fits_better(&attempt, it)) => {
                best = Some(attempt);
            }
            Ok(_) => {}
            Err(error) => failed = error,
        }
    }
    // What was read with a wrong separator says less than why the right one failed.
    best.filter(|it| fit(&it.cells).0 || matches!(failed, FileError::Empty))
        .ok_or(failed)
}

/// The first row that is not blank, and the line where it starts.
fn first_row(rows: &mut RawRows) -> Result<(String, u64), FileError> {
    while let Some(row) = rows.next()? {
        match row.text {
            None => return Err(FileError::LongHeader { line: row.line }),
            Some(_) if row.misplaced_quote => {
                return Err(FileError::UnclosedQuote { line: row.line });
            }
            Some(text) if trim(text).is_empty() => {}
            Some(text) => return Ok((text.to_owned(), row.line)),
        }
    }
    Err(FileError::Empty)
}

/// `sep=;`: the line by which some programs tell a spreadsheet what separates the cells.
fn named_delimiter(line: &str) -> Option<u8> {
    let line = line.trim_matches([' ', '"', '\r']);
    let (name, value) = line.split_at_checked("sep=".len())?;
    let known = |byte: &u8| DELIMITERS.contains(byte) || NAMED_ONLY.contains(byte);
    match value.as_bytes() {
        [byte] if name.eq_ignore_ascii_case("sep=") => Some(*byte).filter(known),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_line_may_name_the_separator() {
        for (line, delimiter) in [
            ("sep=;", Some(b';')),
            ("SEP=\t", Some(b'\t')),
            ("\"sep=|\"", Some(b'|')),
            ("sep=x", None),
            ("sep=", None),
            ("to,body", None),
            ("é", None),
        ] {
            assert_eq!(named_delimiter(line), delimiter, "{line}");
        }
    }
}
