//! A folder of awkward batch files, each with what reading it must give.

mod content;
mod corpus;

use std::collections::HashSet;
use std::path::PathBuf;

use jiff::Timestamp;
use lanekeeper::batch::{Batch, BatchFile, BatchId, FileError, Row, RowOptions, RowOutcome};
use lanekeeper::domain::{AccountId, Channel, Field, Origin};

pub use corpus::corpus;

/// A file that some user has, or will have.
pub struct AwkwardFile {
    /// What is special about it; a file name without its ending.
    pub name: &'static str,
    /// Its content.
    pub bytes: Vec<u8>,
    /// The body of rows that have none.
    pub default_body: Option<&'static str>,
    /// What it must give.
    pub expected: Expected,
}

/// What reading a file must give: for SMS, without a default region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// Nothing, and an error with this text in it.
    Refused(&'static str),
    /// Rows.
    Rows {
        /// The lines of those that become jobs.
        jobs: Vec<u64>,
        /// The lines of those whose recipient was there before.
        duplicates: Vec<u64>,
        /// The lines of those that are rejected, each with the field that is wrong.
        rejected: Vec<(u64, &'static str)>,
    },
}

impl AwkwardFile {
    /// The batch that its expectations are for.
    pub fn batch(&self) -> Batch {
        let body = self.default_body.map(|body| (Field::Body, body.to_owned()));
        Batch {
            account: AccountId::parse("acme").unwrap(),
            channel: Some(Channel::Sms),
            origin: Origin::Campaign,
            id: BatchId::parse("spring").unwrap(),
            priority: None,
            defaults: body.into_iter().collect(),
            default_region: None,
        }
    }

    /// Writes it into a folder.
    pub fn write(&self, folder: &tempfile::TempDir) -> PathBuf {
        let path = folder.path().join(self.name);
        std::fs::write(&path, &self.bytes).unwrap();
        path
    }
}

fn read(file: &AwkwardFile, folder: &tempfile::TempDir) -> Result<Vec<Row>, FileError> {
    let path = file.write(folder);
    let options = RowOptions::default();
    BatchFile::open(&path, None)?
        .rows(&file.batch(), options, Timestamp::UNIX_EPOCH)?
        .collect()
}

/// What was found, in the words of an expectation; a refusal as the text of its error.
fn found(rows: Result<Vec<Row>, FileError>) -> Result<FoundRows, String> {
    let mut found = FoundRows::default();
    for row in rows.map_err(|error| error.to_string())? {
        match row.outcome {
            RowOutcome::Job(job) => {
                assert_eq!(job.head.id.as_str(), format!("spring-{}", row.line));
                found.jobs.push(row.line);
            }
            RowOutcome::Duplicate => found.duplicates.push(row.line),
            RowOutcome::Rejected(error) => {
                assert_eq!(error.line, row.line);
                found.rejected.push((error.line, error.field));
            }
        }
    }
    Ok(found)
}

#[derive(Debug, Default)]
struct FoundRows {
    jobs: Vec<u64>,
    duplicates: Vec<u64>,
    rejected: Vec<(u64, String)>,
}

/// How the found differs from the expected.
fn difference(file: &AwkwardFile, found: &Result<FoundRows, String>) -> Option<String> {
    let name = file.name;
    let as_expected = match (&file.expected, found) {
        (Expected::Refused(part), Err(error)) => error.contains(part),
        (
            Expected::Rows {
                jobs,
                duplicates,
                rejected,
            },
            Ok(found),
        ) => {
            let fields = found.rejected.iter().map(|(line, field)| (*line, &**field));
            *jobs == found.jobs
                && *duplicates == found.duplicates
                && *rejected == fields.collect::<Vec<_>>()
        }
        _ => false,
    };
    let expected = &file.expected;
    (!as_expected).then(|| format!("{name}: expected {expected:?}, found {found:?}"))
}

#[test]
fn every_awkward_file_gives_what_is_expected_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let corpus = corpus();
    assert!(corpus.len() >= 40, "{} files", corpus.len());
    let differences: Vec<_> = corpus
        .iter()
        .filter_map(|file| difference(file, &found(read(file, &folder))))
        .collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn the_places_behind_rows_grow_up_to_the_files_length() {
    let folder = tempfile::tempdir().unwrap();
    for file in corpus() {
        let Ok(rows) = read(&file, &folder) else {
            continue;
        };
        let places: Vec<_> = rows.iter().map(|row| row.end).collect();
        assert!(places.is_sorted_by(|one, next| one < next), "{}", file.name);
        let length = file.bytes.len() as u64;
        assert!(
            places.last().is_none_or(|last| *last <= length),
            "{}",
            file.name
        );
    }
}

const EXAMPLES: [&str; 3] = ["+447700900123", "Europe/London", "a@example.org"];

#[test]
fn no_error_shows_a_value() {
    let folder = tempfile::tempdir().unwrap();
    for file in corpus() {
        let errors = match read(&file, &folder) {
            Err(error) => vec![error.to_string()],
            Ok(rows) => rows
                .into_iter()
                .filter_map(|row| match row.outcome {
                    RowOutcome::Rejected(error) => Some(error.to_string()),
                    _ => None,
                })
                .collect(),
        };
        let values = values(&file);
        for error in errors {
            // What errors show as examples is not taken from the file.
            let error = EXAMPLES
                .iter()
                .fold(error, |error, example| error.replace(example, ""));
            let shown = values.iter().find(|value| error.contains(&***value));
            assert_eq!(shown, None, "{}: {error}", file.name);
        }
    }
}

/// The words and numbers in a file's rows, but for short ones and the names of columns and fields.
fn values(file: &AwkwardFile) -> HashSet<String> {
    let text = String::from_utf8_lossy(&file.bytes);
    let words = |text: &str| -> HashSet<String> {
        let words = text.split(|c: char| !c.is_alphanumeric());
        let long = words.filter(|word| word.chars().count() >= 4);
        long.map(str::to_owned).collect()
    };
    let first = text.lines().find(|line| !line.trim().is_empty());
    let has_no_header = file.name.starts_with("no-header") || text.contains("{\"to\":");
    let names = words(first.filter(|_| !has_no_header).unwrap_or_default());
    let mut values = words(&text);
    values.retain(|word| !names.contains(word) && Field::parse(word).is_none());
    values
}

#[test]
fn only_files_with_too_long_cells_are_large() {
    for file in corpus() {
        let may_be_large = file.name.starts_with("300-kB");
        let is_large = file.bytes.len() > 100_000;
        assert_eq!(is_large, may_be_large, "{}", file.name);
    }
}

#[test]
fn a_pipe_gives_the_same_as_a_file() {
    let folder = tempfile::tempdir().unwrap();
    for file in corpus() {
        let spooled = BatchFile::spool(&file.bytes[..], None);
        let opened = BatchFile::open(&file.write(&folder), None);
        match (spooled, opened) {
            (Ok(spooled), Ok(opened)) => {
                assert_eq!(spooled.digest(), opened.digest());
                assert_eq!(spooled.format(), opened.format());
                assert_eq!(spooled.bytes(), file.bytes.len() as u64);
            }
            (Err(one), Err(other)) => assert_eq!(one.to_string(), other.to_string()),
            _ => panic!("{}", file.name),
        }
    }
}
