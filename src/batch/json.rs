//! A row of JSON lines.

use std::fmt;

use serde::Deserializer;
use serde::de::{Deserialize, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::error::RowError;
use super::template::{Draft, OF_THE_BATCH};
use crate::domain::Field;

/// The entries of an object, in order and also where a name is there twice.
pub(super) struct Entries<'a>(pub(super) Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Entries<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Entries<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

/// Adds what a line says to the draft of its job.
///
/// # Errors
/// When the line is no object, or says something twice or that belongs to the batch.
pub(super) fn fill(draft: &mut Draft, text: &str) -> Result<(), RowError> {
    let line = draft.line;
    let Ok(Entries(entries)) = serde_json::from_str(text) else {
        return Err(RowError::row(line, "expected one JSON object per line"));
    };
    for (place, (name, value)) in entries.iter().enumerate() {
        let Some(field) = Field::parse(name) else {
            draft.entry(name, value.get().as_bytes());
            continue;
        };
        if OF_THE_BATCH.contains(&field) {
            let reason = "is set for the whole batch and may not stand in a row";
            return Err(RowError::new(line, name, reason));
        }
        if entries[..place].iter().any(|(before, _)| before == name) {
            return Err(RowError::new(line, name, "expected once"));
        }
        if value.get() != "null" {
            draft.json(field, value.get().as_bytes());
        }
    }
    Ok(())
}
