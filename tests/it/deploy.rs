//! What lies in deploy/, and the files that make the container: do they fit the program?

mod names;
mod observed;
mod selectors;

use std::path::{Path, PathBuf};

/// The directory of the project.
fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A file of the project, as text.
fn text(file: &str) -> String {
    let path: PathBuf = project().join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What follows `key` on its line, for each line that has it, without quotes.
fn values_of<'a>(text: &'a str, key: &str) -> Vec<&'a str> {
    let values = text.lines().filter_map(|line| line.split_once(key));
    let values = values.filter(|(before, _)| !before.contains('#'));
    values
        .map(|(_, value)| value.trim().trim_matches('"'))
        .collect()
}
