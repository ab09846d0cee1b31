//! Rows in columns as wide as they need to be.

use std::fmt::Write as _;

use crate::cli::escape;

/// A cell is not wider than this, in characters.
const LONGEST: usize = 64;

/// A table for people.
pub(in crate::cli) struct Grid<const COLUMNS: usize> {
    head: Option<[&'static str; COLUMNS]>,
    /// Whether the column stands to the right, as numbers do.
    right: [bool; COLUMNS],
    widths: [usize; COLUMNS],
    rows: Vec<[String; COLUMNS]>,
}

impl<const COLUMNS: usize> Grid<COLUMNS> {
    /// A table with this head.
    pub(in crate::cli) fn new(head: [&'static str; COLUMNS]) -> Self {
        Self {
            right: [false; COLUMNS],
            widths: head.map(str::len),
            head: Some(head),
            rows: Vec::new(),
        }
    }

    /// The same with numbers in a column.
    pub(in crate::cli) const fn right(mut self, column: usize) -> Self {
        self.right[column] = true;
        self
    }

    /// Adds a row. What comes from outside is made harmless here.
    pub(in crate::cli) fn add(&mut self, row: [String; COLUMNS]) {
        let row = row.map(|cell| escape::cut(&escape::line(&cell), LONGEST).into_owned());
        for (width, cell) in self.widths.iter_mut().zip(&row) {
            *width = (*width).max(cell.chars().count());
        }
        self.rows.push(row);
    }

    /// Gives the rows so far as lines, below the head if it was not given before.
    pub(in crate::cli) fn take(&mut self) -> String {
        let mut text = String::new();
        if let Some(head) = self.head.take() {
            self.write(&mut text, &head.map(str::to_owned));
        }
        for row in std::mem::take(&mut self.rows) {
            self.write(&mut text, &row);
        }
        text
    }

    fn write(&self, text: &mut String, row: &[String; COLUMNS]) {
        let mut line = String::new();
        for ((cell, &width), right) in row.iter().zip(&self.widths).zip(self.right) {
            let written = if right {
                write!(line, "{cell:>width$}  ")
            } else {
                write!(line, "{cell:<width$}  ")
            };
            written.expect("writing to a text does not fail");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

/// A cell of what may not be there.
pub(in crate::cli) fn or_dash<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_the_head_stands_once() {
        let mut grid = Grid::new(["NAME", "N"]).right(1);
        grid.add(["a\u{1b}b".to_owned(), "7".to_owned()]);
        grid.add(["c".to_owned(), or_dash(None::<u8>)]);
        assert_eq!(grid.take(), "NAME      N\na\\u{1b}b  7\nc         -\n");
        grid.add(["d".to_owned(), "1000".to_owned()]);
        assert_eq!(grid.take(), "d         1000\n");
    }
}
