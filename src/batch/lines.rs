//! The lines of a file, counted as an editor counts them.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

/// How many bytes are read at a time.
const AT_A_TIME: usize = 64 * 1024;

/// What ends a line. A carriage return before a line feed belongs to the line's blanks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineEnd {
    /// A line feed, with or without a carriage return before it.
    LineFeed,
    /// A carriage return alone, as old programs on the Mac write it.
    CarriageReturn,
}

impl LineEnd {
    const fn byte(self) -> u8 {
        match self {
            Self::LineFeed => b'\n',
            Self::CarriageReturn => b'\r',
        }
    }
}

/// A part of a file from its own place on, so that several readings do not disturb each other.
pub(super) struct Section {
    file: Arc<File>,
    at: u64,
    end: u64,
}

impl Section {
    pub(super) fn new(file: &Arc<File>, at: u64, end: u64) -> Self {
        Self {
            file: Arc::clone(file),
            at,
            end,
        }
    }
}

impl Read for Section {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let room = left.min(buffer.len());
        let count = self.file.read_at(&mut buffer[..room], self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

/// A place between two lines.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// The bytes before it.
    pub(super) offset: u64,
    /// The lines before it.
    pub(super) lines: u64,
}

/// Reads a file line by line.
pub(super) struct Lines {
    input: BufReader<Section>,
    end: u8,
    /// Behind the line that was read last.
    pub(super) place: Place,
}

impl Lines {
    /// The lines of a file of so many bytes, from a place on.
    pub(super) fn new(file: &Arc<File>, place: Place, bytes: u64, end: LineEnd) -> Self {
        let section = Section::new(file, place.offset, bytes);
        Self {
            input: BufReader::with_capacity(AT_A_TIME, section),
            end: end.byte(),
            place,
        }
    }

    /// Shows the next line, in pieces and with its end, to `each`. `false`: there is none.
    pub(super) fn read(&mut self, mut each: impl FnMut(&[u8])) -> io::Result<bool> {
        let mut begun = false;
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                return Ok(begun);
            }
            if !begun {
                begun = true;
                self.place.lines += 1;
            }
            let end = memchr::memchr(self.end, buffer);
            let length = end.map_or(buffer.len(), |end| end + 1);
            each(&buffer[..length]);
            self.input.consume(length);
            self.place.offset += length as u64;
            if end.is_some() {
                return Ok(true);
            }
        }
    }
}
