//! Why a file or one of its rows cannot be used. No error holds a value of a row: recipients and
//! texts are among them.

use std::io;

use serde::Serialize;
use thiserror::Error;

/// How a spreadsheet is told to write a file that can be read.
const SAVE_AS: &str = "save it as \"CSV UTF-8 (comma delimited)\" and give that file";

/// Why a file is refused as a whole. All but [`Changed`](Self::Changed) and
/// [`Read`](Self::Read) are found before its first row is given out.
#[derive(Debug, Error)]
pub enum FileError {
    /// It cannot be opened.
    #[error("cannot open {path}: {why}")]
    Open {
        /// The file.
        path: String,
        /// What the system said.
        why: io::Error,
    },
    /// A directory was named.
    #[error("{path} is a directory; expected a file of CSV or JSON lines, or -")]
    Directory {
        /// The directory.
        path: String,
    },
    /// Reading failed part-way.
    #[error("cannot read on: {0}")]
    Read(#[from] io::Error),
    /// Input from a pipe cannot be kept for the second reading.
    #[error("cannot keep the input in a temporary file: {0}; give the name of a file instead")]
    Spool(io::Error),
    /// The file was written to after it had been read through.
    #[error("the file was changed while it was read; give it again when it is complete")]
    Changed,
    /// There is nothing in it.
    #[error("the file is empty; expected a header line and rows, or JSON objects one per line")]
    Empty,
    /// It is a file of another kind.
    #[error("this is {kind}, not a text; {SAVE_AS}")]
    NotText {
        /// What it seems to be.
        kind: &'static str,
    },
    /// It is text in UTF-16.
    #[error("the text is in UTF-16; expected UTF-8: {SAVE_AS}")]
    Utf16,
    /// It is text in another encoding.
    #[error("line {line}: a character is not in UTF-8, but perhaps in Windows-1252: {SAVE_AS}")]
    NotUtf8 {
        /// The first such line, from 1.
        line: u64,
    },
    /// There is a NUL character in it.
    #[error("line {line}: there is a NUL character; the file is damaged, export it again")]
    Nul {
        /// The first such line, from 1.
        line: u64,
    },
    /// Its first lines are no objects.
    #[error("{seems}; expected one JSON object per line")]
    NotJsonLines {
        /// What it seems to be.
        seems: &'static str,
    },
    /// The first row of a CSV file already has values in it.
    #[error(
        "line {line}: expected a header line with the names of the columns, such as to,body, \
         but this seems to be a row already; put a header line before it"
    )]
    NoHeader {
        /// The line where it should be, from 1.
        line: u64,
    },
    /// No column has the recipients.
    #[error(
        "missing column to; the columns found are: {found}; name the column of the recipients \
         to, and separate columns by commas, semicolons or tabs"
    )]
    MissingColumn {
        /// The names of the columns that there are, or only how many, if they look like values.
        found: String,
    },
    /// Two columns have one name.
    #[error("{columns} have the same name; rename or remove one of them")]
    DuplicateColumn {
        /// Their places, and the name if it looks like one.
        columns: String,
    },
    /// A column is named like a field that the batch sets.
    #[error("column {name} is set for the whole batch; rename or remove the column")]
    BatchColumn {
        /// The name.
        name: &'static str,
    },
    /// A quoted cell ends nowhere, or at another row's quote.
    #[error(
        "line {line}: a quoted cell begins in this row and does not end as it should; close it \
         with a quote, and write a quote inside it twice"
    )]
    UnclosedQuote {
        /// The line where the row starts, from 1.
        line: u64,
    },
    /// The header line is longer than any row may be.
    #[error("line {line}: the header line is longer than {max} bytes", max = super::MAX_ROW)]
    LongHeader {
        /// Its line, from 1.
        line: u64,
    },
}

/// Why a row is no job. It holds nothing of the row's values.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize)]
#[error("line {line}: {field}: {reason}")]
pub struct RowError {
    /// The line in the file where the row starts, from 1.
    pub line: u64,
    /// The field that is wrong; `row` where it is the whole.
    pub field: String,
    /// What is wrong with it.
    pub reason: String,
}

impl RowError {
    pub(super) fn new(line: u64, field: &str, reason: impl Into<String>) -> Self {
        Self {
            line,
            field: field.to_owned(),
            reason: reason.into(),
        }
    }

    /// The row as a whole is wrong.
    pub(super) fn row(line: u64, reason: impl Into<String>) -> Self {
        Self::new(line, "row", reason)
    }
}
