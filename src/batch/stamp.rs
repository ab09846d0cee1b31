//! Whether a file was written to meanwhile.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;

use super::error::FileError;

/// How an open file was at some time. It is the same file all the time, also when another one has
/// taken its name meanwhile.
#[derive(Debug, Clone)]
pub(super) struct Stamp {
    file: Arc<File>,
    facts: Facts,
}

/// A file's length, and when it was written to last, in seconds and nanoseconds.
type Facts = (u64, i64, i64);

impl Stamp {
    /// Of a file as it is now.
    ///
    /// # Errors
    /// When the system does not say.
    pub(super) fn of(file: &Arc<File>) -> io::Result<Self> {
        Ok(Self {
            file: Arc::clone(file),
            facts: facts(file)?,
        })
    }

    /// Makes sure that it is as it was.
    ///
    /// # Errors
    /// [`FileError::Changed`].
    pub(super) fn check(&self) -> Result<(), FileError> {
        if facts(&self.file)? == self.facts {
            Ok(())
        } else {
            Err(FileError::Changed)
        }
    }
}

fn facts(file: &File) -> io::Result<Facts> {
    let found = file.metadata()?;
    Ok((found.len(), found.mtime(), found.mtime_nsec()))
}
