//! The cells of one row, without their quotes.
//!
//! Done here and not by a CSV library, because those read over what must be reported: a quote that
//! is never closed (the rest of the file would become one message) and a text behind a closing one.

/// The cells of a row. Kept for the next row, whose cells take their place.
#[derive(Debug, Default)]
pub(super) struct Cells {
    /// All cells, one after the other.
    text: String,
    /// Where each of them ends.
    ends: Vec<usize>,
}

/// A text stands behind a closing quote, or a quote is not closed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MisplacedQuote;

impl MisplacedQuote {
    /// What is to be done.
    pub(super) const REASON: &str =
        "a quoted cell goes on behind its closing quote; write a quote inside a quoted cell twice";
}

impl Cells {
    /// Takes the cells of a row, which has no line end at its end.
    pub(super) fn split(&mut self, row: &str, delimiter: u8) -> Result<(), MisplacedQuote> {
        self.text.clear();
        self.ends.clear();
        let mut rest = Some(row);
        while let Some(cell) = rest {
            rest = match cell.strip_prefix('"') {
                Some(quoted) => self.quoted(quoted, delimiter)?,
                None => self.unquoted(cell, delimiter),
            };
            self.ends.push(self.text.len());
        }
        Ok(())
    }

    /// Adds a cell; gives what stands behind its delimiter.
    fn unquoted<'a>(&mut self, row: &'a str, delimiter: u8) -> Option<&'a str> {
        let end = memchr::memchr(delimiter, row.as_bytes());
        self.text.push_str(&row[..end.unwrap_or(row.len())]);
        end.map(|end| &row[end + 1..])
    }

    /// The same for a cell whose opening quote has been read.
    fn quoted<'a>(
        &mut self,
        mut row: &'a str,
        delimiter: u8,
    ) -> Result<Option<&'a str>, MisplacedQuote> {
        loop {
            let (part, behind) = row.split_once('"').ok_or(MisplacedQuote)?;
            self.text.push_str(part);
            match behind.as_bytes().first() {
                None => return Ok(None),
                Some(b'"') => self.text.push('"'),
                Some(byte) if *byte == delimiter => return Ok(Some(&behind[1..])),
                Some(_) => return Err(MisplacedQuote),
            }
            row = &behind[1..];
        }
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The cells, from the first on.
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .map(|(start, end)| &self.text[start..*end])
    }

    pub(super) fn get(&self, index: usize) -> Option<&str> {
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.text[start..end])
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

    fn split(row: &str) -> Option<Vec<String>> {
        let mut cells = Cells::default();
        cells.split(row, b',').ok()?;
        let all: Vec<_> = cells.iter().map(str::to_owned).collect();
        let one_by_one: Vec<_> = (0..cells.len()).filter_map(|at| cells.get(at)).collect();
        assert_eq!(all, one_by_one);
        Some(all)
    }

    fn cells_of(row: &str) -> Vec<String> {
        split(row).unwrap()
    }

    #[test]
    fn quotes_hide_delimiters_breaks_and_doubled_quotes() {
        assert_eq!(cells_of("a,,b"), ["a", "", "b"]);
        assert_eq!(cells_of("\"a,\r\nb\",\"\"\"c\"\"\""), ["a,\r\nb", "\"c\""]);
        assert_eq!(cells_of("5\" screen,\"\""), ["5\" screen", ""]);
        assert_eq!(cells_of(""), [""]);
    }

    #[test]
    fn misplaced_quotes_are_told() {
        for row in ["\"a", "\"a\"b", "\"say \"hi\"\",b", "a,\"b\" ,c"] {
            assert_eq!(split(row), None, "{row}");
        }
    }

    #[test]
    fn blanks_of_spreadsheets_and_invisible_marks_are_trimmed() {
        assert_eq!(trim("\u{feff}\u{a0} \u{202a}+44 7\u{202c}\u{a0}"), "+44 7");
    }

    proptest! {
        #[test]
        fn what_the_usual_library_writes_is_read_alike(
            row in prop::collection::vec("[a-c,;\"\r\n é]{0,8}", 1..6)
        ) {
            let mut writer = csv::Writer::from_writer(Vec::new());
            writer.write_record(&row).unwrap();
            let text = String::from_utf8(writer.into_inner().unwrap()).unwrap();
            prop_assert_eq!(split(text.strip_suffix('\n').unwrap()), Some(row));
        }
    }
}
