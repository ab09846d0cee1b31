//! Where dropped messages are kept.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use jiff::Timestamp;
use serde::Serialize;

use crate::intake::dead::Letter;

use super::line::{BodyLine, Line};
use super::problem::Problem;

/// A file of JSON lines that is only ever appended to. It holds recipients and texts, so a new one
/// can be read by its owner alone.
pub(super) struct Save {
    file: File,
    path: String,
}

#[derive(Serialize)]
struct Saved<'a> {
    #[serde(flatten)]
    line: Line<'a>,
    dropped_at: String,
    #[serde(flatten)]
    body: BodyLine<'a>,
}

impl Save {
    pub(super) fn open(path: &Path) -> Result<Self, Problem> {
        let shown = path.display().to_string();
        let mut options = OpenOptions::new();
        let opened = options.create(true).append(true).mode(0o600).open(path);
        let file = opened.map_err(|why| Problem::File {
            path: shown.clone(),
            why,
        })?;
        let saved = Self { file, path: shown };
        // The file's name must outlast a power cut as well.
        let parent = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let directory = File::open(parent.unwrap_or(Path::new(".")));
        let synced = directory.and_then(|directory| directory.sync_all());
        synced.map_err(|why| saved.problem(why))?;
        Ok(saved)
    }

    /// Appends a message; it is on the disk when this returns.
    pub(super) fn append(&mut self, letter: &Letter, now: Timestamp) -> Result<(), Problem> {
        let saved = Saved {
            line: Line::of(&letter.facts, now),
            dropped_at: now.to_string(),
            body: BodyLine::of(letter.payload.as_bytes()),
        };
        let mut line =
            serde_json::to_vec(&saved).expect("texts and numbers can be written as JSON");
        line.push(b'\n');
        let written = self.file.write_all(&line);
        let synced = written.and_then(|()| self.file.sync_data());
        synced.map_err(|why| self.problem(why))
    }

    fn problem(&self, why: std::io::Error) -> Problem {
        let path = self.path.clone();
        Problem::File { path, why }
    }
}
