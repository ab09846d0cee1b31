//! Whether a line break stands inside a quoted cell.

/// Follows the quotes of one row, piece by piece.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quoting {
    delimiter: u8,
    place: Place,
    /// A text stands behind a closing quote, before the next delimiter.
    pub(super) misplaced: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    CellStart,
    Unquoted,
    Quoted,
    /// Behind a quote that closes the cell, unless another one follows.
    BehindQuote,
    /// Behind the closing quote and a part of the line's end.
    BehindCell,
}

impl Quoting {
    /// At the start of a row.
    pub(super) const fn new(delimiter: u8) -> Self {
        Self {
            delimiter,
            place: Place::CellStart,
            misplaced: false,
        }
    }

    /// Goes on behind `piece`.
    pub(super) fn follow(&mut self, piece: &[u8]) {
        let whole_line = self.place == Place::CellStart && piece.ends_with(b"\n");
        if whole_line && memchr::memchr(b'"', piece).is_none() {
            return;
        }
        for &byte in piece {
            self.place = self.behind(byte);
        }
    }

    fn behind(&mut self, byte: u8) -> Place {
        match (self.place, byte) {
            (Place::Quoted, b'"') => Place::BehindQuote,
            (Place::CellStart | Place::BehindQuote, b'"') | (Place::Quoted, _) => Place::Quoted,
            (_, byte) if byte == self.delimiter => Place::CellStart,
            (Place::BehindQuote | Place::BehindCell, b'\r' | b'\n') => Place::BehindCell,
            (Place::BehindQuote | Place::BehindCell, _) => {
                self.misplaced = true;
                Place::Unquoted
            }
            (Place::CellStart | Place::Unquoted, _) => Place::Unquoted,
        }
    }

    /// Whether the place is inside a quoted cell.
    pub(super) fn is_open(self) -> bool {
        self.place == Place::Quoted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a cell is open behind the text, and whether a quote was misplaced in it; the same
    /// wherever the text is cut.
    fn behind(text: &str) -> (bool, bool) {
        let follow = |pieces: [&[u8]; 2]| {
            let mut quoting = Quoting::new(b',');
            for piece in pieces {
                quoting.follow(piece);
            }
            (quoting.is_open(), quoting.misplaced)
        };
        let whole = follow([text.as_bytes(), b""]);
        for place in 0..text.len() {
            let (one, other) = text.as_bytes().split_at(place);
            assert_eq!(follow([one, other]), whole, "{text:?} cut at {place}");
        }
        whole
    }

    #[test]
    fn quoted_cells_are_open_until_a_single_quote() {
        for text in ["\"", "\"\"\"", "a,\"b\nc", "\"a\"\"", "\"a\",\"b,"] {
            assert_eq!(behind(text), (true, false), "{text:?}");
        }
        for text in [
            "",
            "a\n",
            "\"a\"\r\n",
            "5\" b,c\"\n",
            "\"a\nb\"\n",
            "\"\"\"\"",
        ] {
            assert_eq!(behind(text), (false, false), "{text:?}");
        }
    }

    #[test]
    fn a_text_behind_a_closing_quote_is_misplaced() {
        for text in [
            "\"a\"b\n",
            "\"a\" ,b\n",
            "\"say \"hi\"\"\n",
            "\"a\n+44,\"b\n",
        ] {
            assert_eq!(behind(text), (false, true), "{text:?}");
        }
    }
}
