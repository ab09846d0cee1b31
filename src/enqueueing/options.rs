//! By what it is known that two runs of the same file make the same jobs.

use std::fmt::Write as _;

use crate::batch::{Batch, Digest, Format, RowOptions};

/// The digest of the options and settings that decide what becomes of a row. Each value goes in with
/// its name and length, so that no two lists of options look the same.
///
/// # Panics
/// Never.
#[must_use]
pub fn options_digest(format: Format, batch: &Batch, rows: RowOptions) -> Digest {
    let mut all = String::new();
    let mut add = |name: &str, value: &str| {
        writeln!(all, "{name}={}:{value}", value.len()).expect("memory takes it");
    };
    add(
        "channel",
        batch.channel.map_or("", |channel| channel.as_str()),
    );
    add("origin", batch.origin.as_str());
    add(
        "priority",
        batch.priority.map_or("", |priority| priority.as_str()),
    );
    for (field, value) in &batch.defaults {
        add(field.as_str(), value);
    }
    add("default_region", &format!("{:?}", batch.default_region));
    add("format", format.as_str());
    add("allow_duplicates", &rows.allow_duplicates.to_string());
    Digest::of(all.as_bytes())
}
