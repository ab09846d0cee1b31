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
            (Place::CellStart | Place::BehindQuote, b'"') => Place::Quoted,
            (Place::Quoted, b'"') => Place::BehindQuote,
            (Place::Quoted, _) => Place::Quoted,
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
    pub(super) fn is_open(&self) -> bool {
        self.place == Place::Quoted
    }
}
