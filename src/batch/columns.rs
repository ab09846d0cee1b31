//! What the columns of a CSV file mean, told from its header line.

use std::collections::HashMap;

use crate::domain::TRAFFIC_LANE;

use super::cells::{Cells, trim};
use super::error::FileError;
use super::header::Fit;
use super::template::OF_THE_BATCH;
use crate::domain::Field;

/// So many digits in a header's cell are a telephone number.
const DIGITS_OF_A_NUMBER: usize = 7;
/// An error shows at most so many names of columns.
const SHOWN: usize = 20;
/// What looks like a column's name has at most so many characters,
const NAME: usize = 30;
/// so many words,
const WORDS: usize = 3;
/// and so many digits in a row: codes have more.
const DIGITS: usize = 3;

/// Where a column's values go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Column {
    /// To a field of the job.
    Field(Field),
    /// Into the job's metadata, under this name.
    Metadata(String),
    /// Nowhere: the column has no name.
    Unnamed,
}

/// The columns of a file.
#[derive(Debug)]
pub(super) struct Columns {
    pub(super) all: Vec<Column>,
    /// How many cells a row must have: up to the last column that has a name.
    pub(super) width: usize,
    /// Where the channel stands.
    pub(super) channel: Option<usize>,
}

/// Whether there is a column for the recipients, and how many columns there are: the better a
/// delimiter fits, the greater.
pub(super) fn fit(header: &Cells) -> Fit {
    let has_to = header
        .iter()
        .any(|cell| column(cell) == Column::Field(Field::To));
    (has_to, header.len())
}

impl Columns {
    /// Reads the header that stands on a line.
    ///
    /// # Errors
    /// When it is none, or its columns cannot be told apart.
    pub(super) fn parse(header: &Cells, line: u64) -> Result<Self, FileError> {
        if !fit(header).0 {
            return Err(without_recipients(header, line));
        }
        refuse_duplicates(header)?;
        let all: Vec<_> = header.iter().map(column).collect();
        let of_the_batch = |field: &&Field| all.contains(&Column::Field(**field));
        if let Some(field) = OF_THE_BATCH.iter().find(of_the_batch) {
            let name = field.as_str();
            return Err(FileError::BatchColumn { name });
        }
        let place = |field: Field| all.iter().position(|it| *it == Column::Field(field));
        let last_named = all.iter().rposition(|column| *column != Column::Unnamed);
        Ok(Self {
            width: last_named.map_or(0, |last| last + 1),
            channel: place(Field::Channel),
            all,
        })
    }
}

/// There is no column `to`, or this is no header.
fn without_recipients(header: &Cells, line: u64) -> FileError {
    if header.iter().any(is_value) {
        return FileError::NoHeader { line };
    }
    let found = found(header);
    FileError::MissingColumn { found }
}

fn column(cell: &str) -> Column {
    let name = trim(cell);
    let lower = name.to_ascii_lowercase();
    match Field::parse(&lower) {
        Some(field) => Column::Field(field),
        None if name.is_empty() => Column::Unnamed,
        None if lower == TRAFFIC_LANE => Column::Metadata(lower),
        None => Column::Metadata(name.to_owned()),
    }
}

pub(super) fn refuse_duplicates(header: &Cells) -> Result<(), FileError> {
    let mut places = HashMap::new();
    let places_and_names = header.iter().map(trim).enumerate();
    for (place, name) in places_and_names.filter(|(_, name)| !name.is_empty()) {
        if let Some(first) = places.insert(name.to_lowercase(), place) {
            let columns = format!("columns {} and {}", first + 1, place + 1);
            return Err(FileError::DuplicateColumn {
                columns: if looks_like_names(header) {
                    format!("{columns}, {},", shown(name))
                } else {
                    columns
                },
            });
        }
    }
    Ok(())
}

/// A telephone number or an address, which no column is named, and which no error may show.
pub(super) fn is_value(cell: &str) -> bool {
    let digits = cell.chars().filter(char::is_ascii_digit).count();
    digits >= DIGITS_OF_A_NUMBER || cell.contains('@')
}

/// Whether all cells look like names of columns. If one does not, the row may be anybody's message:
/// its other cells are not shown either.
pub(super) fn looks_like_names(header: &Cells) -> bool {
    header.iter().map(trim).all(looks_like_a_name)
}

fn looks_like_a_name(cell: &str) -> bool {
    let mut digits = cell.split(|c: char| !c.is_numeric());
    cell.chars().count() <= NAME
        && cell.split_whitespace().count() <= WORDS
        && digits.all(|digits| digits.chars().count() <= DIGITS)
}

/// The columns' names, or how many there are.
pub(super) fn found(header: &Cells) -> String {
    if !looks_like_names(header) {
        let count = header.len();
        return format!("{count} whose names are not shown, because they look like a row's values");
    }
    let mut names: Vec<_> = header.iter().map(trim).map(shown).collect();
    if names.len() > SHOWN {
        names.truncate(SHOWN);
        names.push("and more".to_owned());
    }
    names.join(", ")
}

pub(super) fn shown(name: &str) -> String {
    format!("`{}`", name.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(header: &str) -> Result<Columns, String> {
        let mut cells = Cells::new(b',');
        cells.split(header);
        Columns::parse(&cells, 1).map_err(|error| error.to_string())
    }

    #[test]
    fn names_are_matched_without_case_and_blanks() {
        let columns = parse("\u{a0}To , BODY,First Name,Traffic_Lane,channel,,").unwrap();
        assert_eq!(
            columns.all[..4],
            [
                Column::Field(Field::To),
                Column::Field(Field::Body),
                Column::Metadata("First Name".to_owned()),
                Column::Metadata("traffic_lane".to_owned()),
            ]
        );
        assert_eq!((columns.width, columns.channel), (5, Some(4)));
    }

    #[test]
    fn columns_that_cannot_be_told_apart_are_refused() {
        assert!(
            parse("to,Name, name")
                .unwrap_err()
                .contains("columns 2 and 3, `name`, have the same name")
        );
        assert!(
            parse("to,ID")
                .unwrap_err()
                .contains("column id is set for the whole batch")
        );
        let missing = parse("phone,body|text").unwrap_err();
        assert!(missing.contains("missing column to") && missing.contains("`phone`, `body|text`"));
    }

    #[test]
    fn what_does_not_look_like_a_name_is_not_shown() {
        for header in [
            "tokenabc,Your code is 4711",
            "tokenabc,code 4711",
            "tokenabc,Your table is booked",
            "tokenabc,Donaudampfschifffahrtsgesellschaft",
        ] {
            let missing = parse(header).unwrap_err();
            assert!(missing.contains("found are: 2 whose names"), "{missing}");
            let twice = parse(&format!("to,{header},Tokenabc")).unwrap_err();
            assert!(
                twice.contains("columns 2 and 4 have the same name"),
                "{twice}"
            );
            for error in [missing, twice] {
                let shown = header.split([',', ' ']).filter(|word| word.len() > 2);
                let shown = shown.filter(|word| error.contains(word));
                assert_eq!(shown.count(), 0, "{error}");
            }
        }
        assert!(
            parse("phone,First Name 2")
                .unwrap_err()
                .contains("`First Name 2`")
        );
    }

    #[test]
    fn a_column_s_name_may_have_digits() {
        assert!(parse("to,visits 2024-01-31,me@home").is_ok());
    }

    #[test]
    fn a_row_in_the_header_s_place_is_told_without_its_values() {
        for header in ["+447700900123,Hello", "a@example.org"] {
            let error = parse(header).unwrap_err();
            assert!(error.contains("put a header line"), "{error}");
            assert!(!error.contains("4477") && !error.contains('@'), "{error}");
        }
    }
}
