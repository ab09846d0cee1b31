//! A file that was read through once and found to be a batch.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;

use super::MAX_ROW;
use super::error::FileError;
use super::header::Header;
use super::lines::Lines;
use super::raw_rows::RawRows;
use super::rows::{Notation, RowOptions, Rows};
use super::shape::{LOOKED_AT, mistaken};
use super::shared::Batch;
use super::survey::{Survey, survey};
use crate::digest::Digest;

/// How a file writes its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A header line and rows, with commas, semicolons or tabs between the cells.
    Csv,
    /// One JSON object per line.
    JsonLines,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 2] = [Self::Csv, Self::JsonLines];

    /// The name, as `--format` takes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::JsonLines => "jsonl",
        }
    }

    /// Reads a format's name; exact spelling.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.as_str() == text)
    }
}

/// Whether a path names no file, but standard input: `-`.
#[must_use]
pub fn is_standard_input(path: &Path) -> bool {
    path == Path::new("-")
}

/// A file that was read through once: it is UTF-8 text, of a known format.
#[derive(Debug)]
pub struct BatchFile {
    file: Arc<File>,
    survey: Survey,
    /// Of a CSV file.
    header: Option<Header>,
    most_rows: u64,
}

impl BatchFile {
    /// Reads a file through, or standard input for `-`. What is no regular file, such as a pipe, is
    /// spooled first, to its end.
    ///
    /// The format is told from the first line that is not blank, unless `hint` names it.
    ///
    /// # Errors
    /// When it cannot be opened or read, or cannot be a batch.
    pub fn open(path: &Path, hint: Option<Format>) -> Result<Self, FileError> {
        if is_standard_input(path) {
            return Self::spool(std::io::stdin().lock(), hint);
        }
        let shown = || path.display().to_string();
        if path.is_dir() {
            return Err(FileError::Directory { path: shown() });
        }
        let open = |why| FileError::Open { path: shown(), why };
        let file = File::open(path).map_err(open)?;
        if file.metadata().map_err(open)?.is_file() {
            Self::of(file, hint)
        } else {
            Self::spool(file, hint)
        }
    }

    /// Keeps everything that `input` gives in an unnamed temporary file, and reads that through.
    ///
    /// # Errors
    /// When the input cannot be kept, or cannot be a batch.
    pub fn spool(mut input: impl Read, hint: Option<Format>) -> Result<Self, FileError> {
        let mut file = tempfile::tempfile().map_err(FileError::Spool)?;
        std::io::copy(&mut input, &mut file).map_err(FileError::Spool)?;
        Self::of(file, hint)
    }

    /// Reads a file through that is open already. Nobody else should write to it.
    ///
    /// # Errors
    /// When it cannot be read, or cannot be a batch.
    pub fn of(file: File, hint: Option<Format>) -> Result<Self, FileError> {
        let file = Arc::new(file);
        let survey = survey(&file)?;
        let lines = |place| Lines::new(&file, place, survey.bytes, survey.line_end);
        let head = head(lines(survey.start()))?;
        let begins_json = head
            .first()
            .ok_or(FileError::Empty)?
            .starts_with(['{', '[']);
        let csv = hint.map_or(!begins_json, |hint| hint == Format::Csv);
        let mut most_rows = survey.lines;
        let header = if csv {
            let header = Header::read(survey.start(), lines)?;
            most_rows = check_quotes(header.rows(lines))?;
            Some(header)
        } else if let Some(seems) = mistaken(&head) {
            return Err(FileError::NotJsonLines { seems });
        } else {
            None
        };
        Ok(Self {
            file,
            survey,
            header,
            most_rows,
        })
    }

    /// Its SHA-256.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.survey.digest
    }

    /// Its length, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.survey.bytes
    }

    /// The most rows that it can have: blank lines may be counted, too.
    #[must_use]
    pub fn most_rows(&self) -> u64 {
        self.most_rows
    }

    /// Its format.
    #[must_use]
    pub fn format(&self) -> Format {
        match self.header {
            Some(_) => Format::Csv,
            None => Format::JsonLines,
        }
    }

    /// What separates the cells; `None` in a file of JSON lines.
    #[must_use]
    pub fn delimiter(&self) -> Option<char> {
        self.header.as_ref().map(|header| header.delimiter.into())
    }

    /// Its rows from the first on, as jobs of `batch` that are queued at `now`. May be called
    /// several times, also while other rows are being read.
    ///
    /// # Errors
    /// [`FileError::Changed`], when the file was written to since it was read through.
    pub fn rows(
        &self,
        batch: &Batch,
        options: RowOptions,
        now: Timestamp,
    ) -> Result<Rows, FileError> {
        self.survey.stamp.check()?;
        let lines = |place| {
            let survey = &self.survey;
            Lines::new(&self.file, place, survey.bytes, survey.line_end)
        };
        let (raw, notation) = match &self.header {
            None => (
                RawRows::new(lines(self.survey.start()), None),
                Notation::Json,
            ),
            Some(header) => (header.rows(lines), header.notation()),
        };
        let stamp = self.survey.stamp.clone();
        Ok(Rows::new(raw, notation, stamp, batch, options, now))
    }
}

/// The first lines that are not blank, without surrounding blanks. Of longer lines than a row may
/// be only the beginning.
fn head(mut lines: Lines) -> Result<Vec<String>, FileError> {
    let mut head = Vec::new();
    let mut line = Vec::new();
    let mut more = true;
    while more && head.len() < LOOKED_AT {
        line.clear();
        more = lines.read(|piece| {
            if line.len() < MAX_ROW {
                line.extend_from_slice(piece);
            }
        })?;
        let text = String::from_utf8_lossy(&line).trim().to_owned();
        if !text.is_empty() {
            head.push(text);
        }
    }
    Ok(head)
}

/// Reads to the end, to find a quote that takes in other rows before the first of them is used, and
/// says how many there are.
fn check_quotes(mut rows: RawRows) -> Result<u64, FileError> {
    let mut count = 0;
    while rows.next()?.is_some() {
        count += 1;
    }
    Ok(count)
}
