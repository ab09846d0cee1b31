//! Reading a file through once: is it UTF-8 text, and which file exactly?

use std::fs::File;
use std::io::Read as _;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::error::FileError;
use super::lines::{LineEnd, Place, Section};
use super::stamp::Stamp;
use crate::digest::Digest;

/// How many bytes are looked at a time.
const AT_A_TIME: usize = 64 * 1024;
/// The longest part of a character that a piece may end with.
const PART: usize = 3;
/// So many bytes tell whether a text is in UTF-16.
const TELLING: usize = 512;

const MARK: &[u8] = b"\xef\xbb\xbf";
const UTF16_MARKS: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];
const OTHER_KINDS: [(&[u8], &str); 6] = [
    (b"PK\x03\x04", "an Excel workbook or another zip archive"),
    (b"\xd0\xcf\x11\xe0", "an Excel workbook of the old kind"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"%PDF", "a PDF document"),
    (b"{\\rtf", "a text document"),
    (b"<", "HTML or XML"),
];

/// What a file is, apart from its rows.
#[derive(Debug)]
pub(super) struct Survey {
    pub(super) digest: Digest,
    /// As it was before it was read.
    pub(super) stamp: Stamp,
    /// Its length, in bytes.
    pub(super) bytes: u64,
    /// Where its text begins: behind the byte order mark that some programs begin a file with.
    start: u64,
    pub(super) line_end: LineEnd,
    /// How many lines there are, the last one with or without an end.
    pub(super) lines: u64,
}

impl Survey {
    /// Where its first line begins.
    pub(super) fn start(&self) -> Place {
        Place {
            offset: self.start,
            lines: 0,
        }
    }
}

/// Reads the file from its start to its end.
///
/// # Errors
/// When it is empty, or no UTF-8 text.
pub(super) fn survey(file: &Arc<File>) -> Result<Survey, FileError> {
    let stamp = Stamp::of(file)?;
    let mut section = Section::new(file, 0, u64::MAX);
    let mut check = Check::default();
    let mut hash = Sha256::new();
    let mut buffer = vec![0; PART + AT_A_TIME];
    let mut kept = 0;
    let mut bytes = 0;
    let mut start = 0;
    loop {
        let count = section.read(&mut buffer[kept..])?;
        let fresh = &buffer[kept..kept + count];
        if bytes == 0 {
            refuse_other_kinds(fresh)?;
            start = if fresh.starts_with(MARK) {
                MARK.len() as u64
            } else {
                0
            };
        }
        hash.update(fresh);
        bytes += count as u64;
        let text = kept + count;
        let done = check.piece(&buffer[..text], count == 0)?;
        buffer.copy_within(done..text, 0);
        kept = text - done;
        if count == 0 {
            break;
        }
    }
    if bytes == start {
        return Err(FileError::Empty);
    }
    Ok(Survey {
        digest: hash.into(),
        stamp,
        bytes,
        start,
        line_end: check.line_end(),
        lines: check.line_at(b""),
    })
}

fn refuse_other_kinds(head: &[u8]) -> Result<(), FileError> {
    let text = head.strip_prefix(MARK).unwrap_or(head);
    if let Some((_, kind)) = OTHER_KINDS
        .iter()
        .find(|(magic, _)| text.starts_with(magic))
    {
        return Err(FileError::NotText { kind });
    }
    let marked = UTF16_MARKS.iter().any(|mark| head.starts_with(mark));
    let telling = &head[..head.len().min(TELLING)];
    let nuls = memchr::memchr_iter(0, telling).count();
    // Every other byte of Latin letters in UTF-16 is a NUL.
    if marked || nuls > 0 && nuls * 4 >= telling.len() {
        return Err(FileError::Utf16);
    }
    Ok(())
}

/// Looks through a text piece by piece.
#[derive(Default)]
struct Check {
    line_feeds: u64,
    carriage_returns: u64,
}

impl Check {
    /// How much of the piece is whole characters. At the end of the text that must be all of it.
    fn piece(&mut self, piece: &[u8], at_end: bool) -> Result<usize, FileError> {
        let valid = match std::str::from_utf8(piece) {
            Ok(_) => piece.len(),
            Err(error) if error.error_len().is_none() && !at_end => error.valid_up_to(),
            Err(error) => {
                let line = self.line_at(&piece[..error.valid_up_to()]);
                return Err(FileError::NotUtf8 { line });
            }
        };
        if let Some(nul) = memchr::memchr(0, &piece[..valid]) {
            let line = self.line_at(&piece[..nul]);
            return Err(FileError::Nul { line });
        }
        self.count(&piece[..valid]);
        Ok(valid)
    }

    fn count(&mut self, text: &[u8]) {
        self.line_feeds += memchr::memchr_iter(b'\n', text).count() as u64;
        self.carriage_returns += memchr::memchr_iter(b'\r', text).count() as u64;
    }

    /// The line that is reached behind `text`.
    fn line_at(&mut self, text: &[u8]) -> u64 {
        self.count(text);
        1 + match self.line_end() {
            LineEnd::LineFeed => self.line_feeds,
            LineEnd::CarriageReturn => self.carriage_returns,
        }
    }

    fn line_end(&self) -> LineEnd {
        if self.line_feeds == 0 && self.carriage_returns > 0 {
            LineEnd::CarriageReturn
        } else {
            LineEnd::LineFeed
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn of(bytes: &[u8]) -> Result<Survey, FileError> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        survey(&Arc::new(file))
    }

    #[test]
    fn characters_may_stand_across_the_pieces_that_are_read() {
        for shift in 0..4 {
            let text = "x".repeat(AT_A_TIME - shift) + "\u{1f469}\n";
            assert_eq!(of(text.as_bytes()).unwrap().bytes, text.len() as u64);
        }
    }

    #[test]
    fn the_line_of_a_fault_is_counted_over_all_pieces() {
        let lines = "0123456789\n".repeat(AT_A_TIME / 5);
        let at = AT_A_TIME as u64 / 5 + 1;
        for fault in [&b"caf\xe9 "[..], b"\xff", b"\xc3"] {
            let error = of(&[lines.as_bytes(), fault].concat()).unwrap_err();
            assert!(
                matches!(error, FileError::NotUtf8 { line } if line == at),
                "{error}"
            );
        }
        let error = of(&[lines.as_bytes(), b"\0"].concat()).unwrap_err();
        assert!(
            matches!(error, FileError::Nul { line } if line == at),
            "{error}"
        );
    }

    #[test]
    fn the_digest_is_the_usual_one() {
        assert_eq!(
            of(b"abc").unwrap().digest.to_string(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn line_ends_are_told_from_the_whole_text() {
        let line_end = |text: &str| of(text.as_bytes()).unwrap().line_end;
        assert_eq!(line_end("a\rb\rc"), LineEnd::CarriageReturn);
        for text in ["a", "a\r\nb", "a\rb\n"] {
            assert_eq!(line_end(text), LineEnd::LineFeed, "{text:?}");
        }
        let lines = |text: &str| of(text.as_bytes()).unwrap().lines;
        assert_eq!(["a\rb\rc", "a\r\nb", "a"].map(lines), [3, 2, 1]);
    }
}
