//! CSV files of something else than messages: a table with columns that the caller names.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use thiserror::Error;

use super::cells::{Cells, MISPLACED_QUOTE, trim};
use super::columns::{found, is_value, looks_like_names, refuse_duplicates, shown};
use super::error::{FileError, RowError};
use super::header::{Fit, HeaderLine};
use super::lines::{Lines, Place};
use super::number::{LostDigits, as_meant};
use super::quoting::Quoting;
use super::raw_rows::RawRows;
use super::survey::{Survey, survey};
use super::{MAX_ROW, is_standard_input};

/// Why a file is no such table. No error holds a value of a row.
#[derive(Debug, Error)]
pub enum TableError {
    /// It cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// There is nothing in it.
    #[error("the file is empty; expected a header line such as {expected}, and rows")]
    Empty {
        /// The names of the columns.
        expected: String,
    },
    /// The first row has values in it already.
    #[error(
        "line {line}: expected a header line such as {expected}, but this seems to be a row \
         already; put a header line before it"
    )]
    NoHeader {
        /// The line where it should be, from 1.
        line: u64,
        /// The names of the columns.
        expected: String,
    },
    /// A column that must be there is not.
    #[error("missing column {name}; the columns found are: {found}")]
    Missing {
        /// Its name.
        name: &'static str,
        /// The names of the columns that there are, or only how many, if they look like values.
        found: String,
    },
    /// A column that means nothing here: perhaps a misspelt one.
    #[error("{column} is none of {expected}; rename or remove it")]
    Unknown {
        /// Which one.
        column: String,
        /// The names of the columns that there may be.
        expected: String,
    },
}

/// The columns of a table.
#[derive(Debug, Clone, Copy)]
pub struct TableColumns {
    /// Those that must be there.
    pub required: &'static [&'static str],
    /// Those that may be there.
    pub optional: &'static [&'static str],
}

impl TableColumns {
    fn all(self) -> impl Iterator<Item = &'static str> {
        self.required.iter().chain(self.optional).copied()
    }

    fn listed(self) -> String {
        self.all().collect::<Vec<_>>().join(",")
    }

    fn find(self, cell: &str) -> Option<&'static str> {
        let name = trim(cell).to_ascii_lowercase().replace(['-', ' '], "_");
        self.all().find(|known| *known == name)
    }

    fn fit(self, header: &Cells) -> Fit {
        let known = header.iter().any(|cell| self.find(cell).is_some());
        (known, header.len())
    }
}

/// A CSV file that was read through once: it is UTF-8 text with a header line of known columns.
#[derive(Debug)]
pub struct TableFile {
    file: Arc<File>,
    survey: Survey,
    delimiter: u8,
    /// What each column is; `None`: it has no name.
    columns: Arc<[Option<&'static str>]>,
    behind: Place,
}

impl TableFile {
    /// Reads a file through, or standard input for `-`. What is no regular file, such as a pipe, is
    /// kept in an unnamed temporary file first, to its end.
    ///
    /// # Errors
    /// When it cannot be opened or read, or has not these columns.
    pub fn open(path: &Path, columns: TableColumns) -> Result<Self, TableError> {
        let file = if is_standard_input(path) {
            spool(&mut std::io::stdin().lock())?
        } else {
            regular_file(path)?
        };
        Self::of(file, columns)
    }

    fn of(file: File, columns: TableColumns) -> Result<Self, TableError> {
        let file = Arc::new(file);
        let expected = || columns.listed();
        let empty = |error| match error {
            FileError::Empty => TableError::Empty {
                expected: expected(),
            },
            other => TableError::File(other),
        };
        let survey = survey(&file).map_err(empty)?;
        let lines = |place| Lines::new(&file, place, survey.bytes, survey.line_end);
        let fit = |header: &Cells| columns.fit(header);
        let header = HeaderLine::read(survey.start(), lines, fit).map_err(empty)?;
        let named = named(&header, columns)?;
        Ok(Self {
            delimiter: header.delimiter,
            behind: header.behind,
            columns: named,
            file,
            survey,
        })
    }

    /// Its length, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.survey.bytes
    }

    /// Its rows from the first on. May be called several times.
    ///
    /// # Errors
    /// [`FileError::Changed`], when the file was written to since it was read through.
    pub fn rows(&self) -> Result<TableRows, FileError> {
        self.survey.stamp.check()?;
        let survey = &self.survey;
        let lines = Lines::new(&self.file, self.behind, survey.bytes, survey.line_end);
        Ok(TableRows {
            raw: RawRows::new(lines, Some(Quoting::new(self.delimiter))),
            cells: Cells::new(self.delimiter),
            columns: Arc::clone(&self.columns),
            check: survey.stamp.clone(),
        })
    }
}

fn regular_file(path: &Path) -> Result<File, FileError> {
    let shown = || path.display().to_string();
    if path.is_dir() {
        return Err(FileError::Directory { path: shown() });
    }
    let open = |why| FileError::Open { path: shown(), why };
    let mut file = File::open(path).map_err(open)?;
    if file.metadata().map_err(open)?.is_file() {
        return Ok(file);
    }
    spool(&mut file)
}

fn spool(input: &mut impl std::io::Read) -> Result<File, FileError> {
    let mut file = tempfile::tempfile().map_err(FileError::Spool)?;
    std::io::copy(input, &mut file).map_err(FileError::Spool)?;
    Ok(file)
}

/// What each column is.
fn named(
    header: &HeaderLine,
    columns: TableColumns,
) -> Result<Arc<[Option<&'static str>]>, TableError> {
    let cells = &header.cells;
    if !columns.fit(cells).0 && cells.iter().any(is_value) {
        return Err(TableError::NoHeader {
            line: header.line,
            expected: columns.listed(),
        });
    }
    refuse_duplicates(cells)?;
    let is_there = |name: &str| cells.iter().any(|cell| columns.find(cell) == Some(name));
    if let Some(name) = columns.required.iter().find(|name| !is_there(name)) {
        let found = found(cells);
        return Err(TableError::Missing { name, found });
    }
    let each = cells.iter().enumerate();
    each.map(|(place, cell)| match columns.find(cell) {
        None if !trim(cell).is_empty() => Err(TableError::Unknown {
            column: if looks_like_names(cells) {
                format!("column {}", shown(trim(cell)))
            } else {
                format!("column {}", place + 1)
            },
            expected: columns.listed(),
        }),
        known => Ok(known),
    })
    .collect()
}

/// The rows of a table, read one at a time.
pub struct TableRows {
    raw: RawRows,
    cells: Cells,
    columns: Arc<[Option<&'static str>]>,
    check: super::stamp::Stamp,
}

impl TableRows {
    /// The next row that is not blank; `Err` within it when it is no row that can be used.
    ///
    /// # Errors
    /// When the file cannot be read on.
    pub fn next_row(&mut self) -> Result<Option<Result<TableRow<'_>, RowError>>, FileError> {
        let (line, end) = loop {
            let Some(raw) = self.raw.next()? else {
                self.check.check()?;
                return Ok(None);
            };
            let line = raw.line;
            let Some(text) = raw.text else {
                let reason = format!("expected at most {MAX_ROW} bytes");
                return Ok(Some(Err(RowError::row(line, reason))));
            };
            if raw.misplaced_quote {
                return Ok(Some(Err(RowError::row(line, MISPLACED_QUOTE))));
            }
            self.cells.split(text);
            if self.cells.iter().any(|cell| !trim(cell).is_empty()) {
                break (line, raw.end);
            }
        };
        Ok(Some(self.row(line, end)))
    }

    fn row(&self, line: u64, end: u64) -> Result<TableRow<'_>, RowError> {
        let used = self.cells.iter().enumerate();
        let mut used = used.filter(|(_, cell)| !trim(cell).is_empty());
        let unnamed = |place: usize| self.columns.get(place).is_none_or(Option::is_none);
        if let Some((place, _)) = used.find(|(place, _)| unnamed(*place)) {
            let number = place + 1;
            let reason = format!("cell {number} has a value, but no name in the header line");
            return Err(RowError::row(line, reason));
        }
        Ok(TableRow {
            line,
            end,
            cells: &self.cells,
            columns: &self.columns,
        })
    }
}

/// A row of a table.
pub struct TableRow<'a> {
    /// The line where it starts, from 1.
    pub line: u64,
    /// The place in the file behind it, in bytes from the start.
    pub end: u64,
    cells: &'a Cells,
    columns: &'a [Option<&'static str>],
}

impl<'a> TableRow<'a> {
    /// What stands in a column, without surrounding blanks; `None` when there is nothing.
    #[must_use]
    pub fn get(&self, column: &str) -> Option<&'a str> {
        let place = self.columns.iter().position(|it| *it == Some(column))?;
        let cell = trim(self.cells.get(place)?);
        (!cell.is_empty()).then_some(cell)
    }

    /// The same for a column that may hold telephone numbers: freed from what spreadsheets add to
    /// them.
    ///
    /// # Errors
    /// When a spreadsheet has lost digits of it.
    pub fn number(&self, column: &'static str) -> Result<Option<&'a str>, RowError> {
        let cell = self.get(column).map(as_meant).transpose();
        cell.map_err(|LostDigits| self.error(column, LostDigits::REASON))
    }

    /// The same for a column that must hold something.
    ///
    /// # Errors
    /// When there is nothing.
    pub fn required(&self, column: &'static str) -> Result<&'a str, RowError> {
        self.get(column)
            .ok_or_else(|| self.error(column, "expected a value, found nothing"))
    }

    /// What stands in a column, read by `parse`, whose errors say what was expected.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn parsed<T, E: ToString>(
        &self,
        column: &'static str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Option<T>, RowError> {
        let parsed = self.get(column).map(parse).transpose();
        parsed.map_err(|error| self.error(column, error.to_string()))
    }

    /// The same for a column that must hold something.
    ///
    /// # Errors
    /// When there is nothing, or it cannot be read.
    pub fn required_parsed<T, E: ToString>(
        &self,
        column: &'static str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Result<T, RowError> {
        let cell = self.required(column)?;
        parse(cell).map_err(|error| self.error(column, error.to_string()))
    }

    /// What is wrong with a column of this row.
    #[must_use]
    pub fn error(&self, column: &str, reason: impl Into<String>) -> RowError {
        RowError::new(self.line, column, reason)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    const COLUMNS: TableColumns = TableColumns {
        required: &["recipient"],
        optional: &["time_zone", "source"],
    };

    fn open(text: &str) -> Result<TableFile, String> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        TableFile::of(file, COLUMNS).map_err(|error| error.to_string())
    }

    /// Each row's line, recipient and source.
    fn rows(text: &str) -> Vec<Result<(u64, String, String), String>> {
        let mut rows = open(text).unwrap().rows().unwrap();
        let mut all = Vec::new();
        while let Some(row) = rows.next_row().unwrap() {
            let cell = |row: &TableRow<'_>, name| row.get(name).unwrap_or("-").to_owned();
            all.push(
                row.map(|row| (row.line, cell(&row, "recipient"), cell(&row, "source")))
                    .map_err(|error| error.to_string()),
            );
        }
        all
    }

    #[test]
    fn columns_stand_in_any_order_and_separator() {
        for text in [
            "source,recipient\nweb,+44\n",
            "Recipient; SOURCE\n+44; web\n",
            "\u{feff}sep=|\nrecipient|source|\n\" +44 \"|web|\n",
            "\nrecipient\tsource\r\n\r\n+44\tweb\r\n",
        ] {
            let found: Vec<_> = rows(text).into_iter().map(|row| row.unwrap()).collect();
            let [(_, recipient, source)] = &found[..] else {
                panic!("{text:?}: {found:?}");
            };
            assert_eq!((&**recipient, &**source), ("+44", "web"), "{text:?}");
        }
    }

    #[test]
    fn names_may_be_written_like_options_or_in_a_table_s_words() {
        for name in ["time_zone", "time-zone", "Time Zone"] {
            let file = open(&format!("recipient,{name}\n+44,utc\n")).unwrap();
            let mut rows = file.rows().unwrap();
            let row = rows.next_row().unwrap().unwrap().unwrap();
            assert_eq!(row.get("time_zone"), Some("utc"), "{name}");
        }
    }

    #[test]
    fn a_row_that_cannot_be_used_is_named_and_the_others_are_read() {
        let found = rows("recipient,source\na,b\nc,d,e\n,,\n\"f\"g,h\ni\n");
        let good = |line, recipient: &str, source: &str| {
            Ok((line, recipient.to_owned(), source.to_owned()))
        };
        assert_eq!(found[0], good(2, "a", "b"));
        let error = found[1].as_ref().unwrap_err();
        assert!(
            error.starts_with("line 3: row: cell 3 has a value"),
            "{error}"
        );
        assert!(found[2].as_ref().unwrap_err().starts_with("line 5: row:"));
        assert_eq!(found[3], good(6, "i", "-"));
    }

    #[test]
    fn a_file_without_the_columns_is_refused_without_its_values() {
        for (text, error) in [
            (
                "",
                "the file is empty; expected a header line such as recipient,time_zone,source",
            ),
            (
                "+447700900123\n",
                "line 1: expected a header line such as recipient",
            ),
            ("a@example.org,web\n", "line 1: expected a header line"),
            (
                "source\nweb\n",
                "missing column recipient; the columns found are: `source`",
            ),
            (
                "recipient,sorce\n",
                "column `sorce` is none of recipient,time_zone,source",
            ),
            ("recipient,Your code is 4711\n", "column 2 is none of"),
            (
                "recipient,source,Source\n",
                "columns 2 and 3, `Source`, have the same name",
            ),
        ] {
            let found = open(text).unwrap_err();
            assert!(found.contains(error), "{text:?}: {found}");
            assert!(
                !found.contains("4477") && !found.contains("4711"),
                "{found}"
            );
        }
    }

    #[test]
    fn numbers_are_freed_from_what_spreadsheets_add() {
        let file = open("recipient\n=\"447700900123\"\n4.47E+11\n").unwrap();
        let mut rows = file.rows().unwrap();
        let mut next = || {
            let row = rows.next_row().unwrap().unwrap().unwrap();
            row.number("recipient").map(|cell| cell.map(str::to_owned))
        };
        assert_eq!(next(), Ok(Some("447700900123".to_owned())));
        let error = next().unwrap_err().to_string();
        assert!(
            error.starts_with("line 3: recipient: digits were lost"),
            "{error}"
        );
    }
}
