//! A row of a CSV file.

use std::collections::HashSet;

use crate::domain::TRAFFIC_LANE;
use serde_json::value::RawValue;

use super::cells::{Cells, trim};
use super::columns::{Column, Columns};
use super::error::RowError;
use super::json::Entries;
use super::number::{LostDigits, as_meant};
use super::template::{Draft, push_entry, push_string};
use crate::domain::{Channel, Field};

/// Adds what the cells say to the draft of their job. Empty cells say nothing. `channel` is that of
/// rows that name none.
///
/// # Errors
/// When there are too many cells or too few, or one of them cannot be what its column says.
pub(super) fn fill(
    draft: &mut Draft,
    columns: &Columns,
    cells: &Cells,
    channel: Option<Channel>,
) -> Result<(), RowError> {
    let line = draft.line;
    expect_width(line, columns, cells)?;
    let named = columns.channel.and_then(|place| cells.get(place));
    let channel = named
        .and_then(|name| Channel::parse(trim(name)))
        .or(channel);
    let mut metadata = Metadata::default();
    for (place, (column, cell)) in columns.all.iter().zip(cells.iter()).enumerate() {
        let value = trim(cell);
        match column {
            _ if value.is_empty() => {}
            Column::Field(Field::Body) => draft.string(Field::Body, cell),
            Column::Field(Field::Content) => {
                object(line, Field::Content, value)?;
                draft.json(Field::Content, value.as_bytes());
            }
            Column::Field(Field::Metadata) => metadata.object = Some(value),
            Column::Field(field) => draft.string(*field, of_field(line, *field, value, channel)?),
            Column::Metadata(name) if name == TRAFFIC_LANE => metadata.add(name, value),
            Column::Metadata(name) => metadata.add(name, cell),
            Column::Unnamed => {
                let number = place + 1;
                let reason = format!("column {number} has a value, but no name in the header line");
                return Err(RowError::row(line, reason));
            }
        }
    }
    metadata.complete(draft)
}

/// Empty cells behind the last column do no harm.
fn expect_width(line: u64, columns: &Columns, cells: &Cells) -> Result<(), RowError> {
    let last = cells
        .iter()
        .enumerate()
        .filter(|(_, cell)| !trim(cell).is_empty())
        .last();
    let used = last.map_or(0, |(place, _)| place + 1);
    if cells.len() >= columns.width && used <= columns.all.len() {
        return Ok(());
    }
    let (expected, found) = (columns.width, cells.len());
    let reason = format!("expected {expected} cells as in the header line, found {found}");
    Err(RowError::row(line, reason))
}

/// A field's value. Numbers are freed from what spreadsheets add to them.
fn of_field(
    line: u64,
    field: Field,
    value: &str,
    channel: Option<Channel>,
) -> Result<&str, RowError> {
    if !channel.is_some_and(Channel::is_phone) || !matches!(field, Field::To | Field::From) {
        return Ok(value);
    }
    as_meant(value).map_err(|LostDigits| RowError::new(line, field.as_str(), LostDigits::REASON))
}

/// The entries of a JSON object in a cell.
fn object(line: u64, field: Field, cell: &str) -> Result<Vec<(String, &RawValue)>, RowError> {
    let Ok(Entries(entries)) = serde_json::from_str(cell) else {
        let reason = "expected a JSON object in the cell, such as {\"table\":7}";
        return Err(RowError::new(line, field.as_str(), reason));
    };
    Ok(entries)
}

/// What a row says for its job's metadata: columns of any other name, and an object.
#[derive(Default)]
struct Metadata<'a> {
    /// The columns' entries in JSON, each with a comma before it.
    text: Vec<u8>,
    names: Vec<&'a str>,
    object: Option<&'a str>,
}

impl<'a> Metadata<'a> {
    fn add(&mut self, name: &'a str, value: &str) {
        push_entry(&mut self.text, name);
        push_string(&mut self.text, value);
        self.names.push(name);
    }

    fn complete(mut self, draft: &mut Draft) -> Result<(), RowError> {
        if let Some(cell) = self.object {
            // A cell has room for tens of thousands of them.
            let mut names: HashSet<_> = self.names.iter().map(|name| (*name).to_owned()).collect();
            for (name, value) in object(draft.line, Field::Metadata, cell)? {
                push_entry(&mut self.text, &name);
                self.text.extend_from_slice(value.get().as_bytes());
                if !names.insert(name) {
                    let reason = "an entry of the object is there twice, or has a column as well";
                    return Err(RowError::new(draft.line, Field::Metadata.as_str(), reason));
                }
            }
        }
        if let Some(first) = self.text.first_mut() {
            *first = b'{';
            self.text.push(b'}');
            draft.json(Field::Metadata, &self.text);
        }
        Ok(())
    }
}
