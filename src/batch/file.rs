//! A file that was read through once and found to be a batch.

use std::fmt;
use std::fs::File;
use std::io::{Read, Seek as _};
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;

use super::error::FileError;
use super::lines::{Lines, Section};
use super::raw_rows::RawRows;
use super::rows::{RowOptions, Rows};
use super::shape::{LOOKED_AT, mistaken};
use super::shared::Batch;
use super::survey::{Survey, survey};

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

/// The SHA-256 of a file's bytes. Displayed in hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest(pub(super) [u8; 32]);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A file that was read through once: it is UTF-8 text, of a known format.
#[derive(Debug)]
pub struct BatchFile {
    file: Arc<File>,
    survey: Survey,
    format: Format,
}

impl BatchFile {
    /// Reads a file through. What is no regular file, such as a pipe, is spooled first, to its end.
    ///
    /// The format is told from the first line that is not blank, unless `hint` names it.
    ///
    /// # Errors
    /// When it cannot be opened or read, or cannot be a batch.
    pub fn open(path: &Path, hint: Option<Format>) -> Result<Self, FileError> {
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
        file.rewind().map_err(FileError::Spool)?;
        Self::of(file, hint)
    }

    fn of(file: File, hint: Option<Format>) -> Result<Self, FileError> {
        let file = Arc::new(file);
        let survey = survey(&file)?;
        let mut batch = Self {
            file,
            survey,
            format: hint.unwrap_or(Format::JsonLines),
        };
        let head = batch.head()?;
        if hint.is_none()
            && !head
                .first()
                .is_some_and(|line| line.starts_with(['{', '[']))
        {
            batch.format = Format::Csv;
        }
        match batch.format {
            Format::JsonLines => match mistaken(&head) {
                Some(seems) => Err(FileError::NotJsonLines { seems }),
                None => Ok(batch),
            },
            Format::Csv => Ok(batch),
        }
    }

    /// The first lines that are not blank, without surrounding blanks.
    fn head(&self) -> Result<Vec<String>, FileError> {
        let mut rows = RawRows::new(self.lines());
        let mut head = Vec::new();
        while head.len() < LOOKED_AT {
            let Some(row) = rows.next()? else { break };
            let text = row.text.unwrap_or("").trim();
            if !text.is_empty() || row.text.is_none() {
                head.push(text.to_owned());
            }
        }
        Ok(head)
    }

    fn lines(&self) -> Lines {
        let section = Section::new(&self.file, self.survey.start, self.survey.bytes);
        Lines::new(section, self.survey.line_end)
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

    /// Its format.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Its rows from the first on, as jobs of `batch` that are queued at `now`. May be called
    /// several times, also while other rows are being read.
    ///
    /// # Errors
    /// None at present: what can be wrong with a file as a whole is found when it is opened.
    pub fn rows(
        &self,
        batch: &Batch,
        options: RowOptions,
        now: Timestamp,
    ) -> Result<Rows, FileError> {
        let raw = RawRows::new(self.lines());
        Ok(Rows::new(raw, self.bytes(), batch, options, now))
    }
}
