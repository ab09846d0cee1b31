//! Results on standard output.

use std::io::{self, Write as _};

use serde::Serialize;

use super::problem::Problem;
use crate::cli::escape;

/// Writes to standard output. `false`: whoever read it has gone, and wants no more.
pub(in crate::cli) fn print(text: &str) -> Result<bool, Problem> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Problem::Output(error)),
    }
}

/// Writes values as JSON, one in a line.
pub(in crate::cli) fn print_json<T: Serialize>(
    values: impl IntoIterator<Item = T>,
) -> Result<bool, Problem> {
    let mut text = String::new();
    for value in values {
        text += &escape::json(&value).expect("texts and numbers can be written as JSON");
        text.push('\n');
    }
    print(&text)
}

/// `1 cap`, `2 caps`.
pub(in crate::cli) fn counted(count: u64, one: &str, many: &str) -> String {
    let count_shown = indicatif::HumanCount(count);
    format!("{count_shown} {}", if count == 1 { one } else { many })
}
