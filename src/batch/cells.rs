//! The cells of one row, without their quotes.

use csv_core::{Reader, ReaderBuilder, Terminator};

/// No text has it, so no row ends by it: where rows end has been decided before.
const NEVER: Terminator = Terminator::Any(b'\0');

/// The cells of a row. Kept for the next row, whose cells take their place.
#[derive(Debug)]
pub(super) struct Cells {
    reader: Reader,
    delimiter: u8,
    /// All cells, one after the other.
    text: Vec<u8>,
    /// Where each of them ends.
    ends: Vec<usize>,
    /// How many there are.
    count: usize,
}

/// What is to be done about a text behind a closing quote. The CSV library reads over it.
pub(super) const MISPLACED_QUOTE: &str =
    "a quoted cell goes on behind its closing quote; write a quote inside a quoted cell twice";

impl Cells {
    /// No cells yet, of rows with this delimiter.
    pub(super) fn new(delimiter: u8) -> Self {
        let mut reader = ReaderBuilder::new();
        Self {
            reader: reader.delimiter(delimiter).terminator(NEVER).build(),
            delimiter,
            text: Vec::new(),
            ends: Vec::new(),
            count: 0,
        }
    }

    /// Takes the cells of a row, which has no line end at its end.
    pub(super) fn split(&mut self, row: &str) {
        let row = row.as_bytes();
        // Cells are no longer than what they are read from, nor more than the delimiters allow.
        self.text.resize(row.len(), 0);
        self.ends
            .resize(memchr::memchr_iter(self.delimiter, row).count() + 1, 0);
        self.reader.reset();
        let (_, _, length, count) = self.reader.read_record(row, &mut self.text, &mut self.ends);
        let (text, ends) = (&mut self.text[length..], &mut self.ends[count..]);
        // The end of the input ends the last cell.
        let (.., last) = self.reader.read_record(b"", text, ends);
        self.count = count + last;
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// The cells, from the first on.
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.count).filter_map(|index| self.get(index))
    }

    pub(super) fn get(&self, index: usize) -> Option<&str> {
        let ends = &self.ends[..self.count];
        let end = *ends.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| ends[before]);
        // Cut at ASCII characters only, so it is whole characters again.
        std::str::from_utf8(&self.text[start..end]).ok()
    }
}

/// A cell without surrounding blanks, among them the non-breaking spaces and the invisible marks
/// that are copied into spreadsheets from web pages and address books.
pub(super) fn trim(cell: &str) -> &str {
    cell.trim_matches(|c: char| c.is_whitespace() || is_invisible(c))
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cells_of(row: &str) -> Vec<String> {
        let mut cells = Cells::new(b',');
        // What stood there before leaves no trace.
        cells.split("before,\"and\",more,,,,,,");
        cells.split(row);
        let all: Vec<_> = cells.iter().map(str::to_owned).collect();
        assert_eq!(all.len(), cells.len());
        all
    }

    #[test]
    fn quotes_hide_delimiters_breaks_and_doubled_quotes() {
        assert_eq!(cells_of("a,,b"), ["a", "", "b"]);
        assert_eq!(cells_of("a,"), ["a", ""]);
        assert_eq!(cells_of("\"a,\r\nb\",\"\"\"c\"\"\""), ["a,\r\nb", "\"c\""]);
        assert_eq!(cells_of("5\" screen,\"\""), ["5\" screen", ""]);
        assert_eq!(cells_of("a\rb,c"), ["a\rb", "c"]);
    }

    #[test]
    fn blanks_of_spreadsheets_and_invisible_marks_are_trimmed() {
        assert_eq!(trim("\u{feff}\u{a0} \u{202a}+44 7\u{202c}\u{a0}"), "+44 7");
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_alike(
            row in prop::collection::vec("[a-c,;\"\r\n é]{0,8}", 1..6)
        ) {
            let mut writer = csv::Writer::from_writer(Vec::new());
            writer.write_record(&row).unwrap();
            let text = String::from_utf8(writer.into_inner().unwrap()).unwrap();
            prop_assert_eq!(cells_of(text.strip_suffix('\n').unwrap()), row);
        }
    }
}
