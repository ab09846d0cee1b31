//! A CSV file becomes rows of a table: all of them, or none.
//!
//! The file is read twice. The first reading checks every row, before anything is written; the
//! second writes, in one transaction, while the next rows are being read.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use sqlx::{Connection as _, PgConnection};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::import_report::Report;
use super::problem::Problem;
use super::session::Session;
use crate::accounts::tables::TableError;
use crate::accounts::tables::accounts::Changed;
use crate::batch::{FileError, RowError, TableColumns, TableFile, TableRow, TableRows};
use crate::cli::progress::Progress;
use crate::cli::stop::Stop;

/// So many rows are written by one statement.
const CHUNK: usize = 5_000;
/// So many chunks are read ahead.
const AHEAD: usize = 2;

/// What is imported, and how.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ImportArgs {
    /// The CSV file, or - for standard input
    pub(in crate::cli) file: PathBuf,
    /// Write the rows that can be used, instead of nothing, when others cannot
    #[arg(long)]
    pub(in crate::cli) skip_bad: bool,
    /// Only check the file: nothing is written
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,
    /// Show at most so many rows that cannot be used
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(in crate::cli) max_errors: usize,
    /// Print one JSON object about the import, and no progress
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

/// Rows of one kind.
pub(in crate::cli) trait Imported: Send + Sync + 'static {
    /// What a row says.
    type Row: Send + 'static;

    /// The columns of its files.
    const COLUMNS: TableColumns;

    /// Reads a row.
    fn read(&self, row: &TableRow<'_>) -> Result<Self::Row, RowError>;

    /// What may stand in a file only once; `None`: anything may be repeated.
    fn key(row: &Self::Row) -> Option<String>;

    /// Writes rows, within a transaction.
    async fn write(
        &self,
        connection: &mut PgConnection,
        rows: &[Self::Row],
    ) -> Result<Changed, TableError>;

    /// Whatever is to be done after so many new rows were written.
    async fn afterwards(&self, _: &mut PgConnection, _: u64) -> Result<(), TableError> {
        Ok(())
    }
}

/// Imports a file, and gives the exit code.
pub(in crate::cli) async fn import<I: Imported>(
    session: &mut Session,
    args: ImportArgs,
    what: I,
) -> Result<u8, Problem> {
    let stop = Stop::listen().map_err(|error| Problem::Usage(error.to_string()))?;
    let started = Instant::now();
    let importing = Importing {
        file: open(&args, &stop, I::COLUMNS).await?,
        what: Arc::new(what),
        args,
        stop,
    };
    let mut report = importing.check().await?;
    if report.is_writable(&importing.args) {
        importing
            .write(&mut session.connection, &mut report)
            .await?;
    }
    report.took = started.elapsed();
    report.show(&importing.args)
}

/// Opens the file; a long one, or a pipe, may take its time.
async fn open(args: &ImportArgs, stop: &Stop, columns: TableColumns) -> Result<TableFile, Problem> {
    let path = args.file.clone();
    let opening = tokio::task::spawn_blocking(move || TableFile::open(&path, columns));
    tokio::select! {
        opened = opening => Ok(opened.expect("reading a file does not panic")?),
        signal = stop.asked() => Err(Problem::Stopped(signal)),
    }
}

struct Importing<I> {
    file: TableFile,
    what: Arc<I>,
    args: ImportArgs,
    stop: Stop,
}

impl<I: Imported> Importing<I> {
    /// Reads every row, and writes none.
    async fn check(&self) -> Result<Report, Problem> {
        let mut progress = self.progress("checking");
        let mut report = Report::of(&self.args.file);
        let mut chunks = self.chunks()?;
        while let Some(chunk) = self.next(&mut chunks).await? {
            report.rows += chunk.rows.len() as u64 + chunk.rejected.len() as u64;
            for error in chunk.rejected {
                if report.rejected_rows.len() < self.args.max_errors {
                    if !self.args.json {
                        progress.say(&error);
                    }
                    report.rejected_rows.push(error);
                }
                report.rejected += 1;
            }
            progress.advance(report.rows, chunk.end);
        }
        Ok(report)
    }

    async fn write(
        &self,
        connection: &mut PgConnection,
        report: &mut Report,
    ) -> Result<(), Problem> {
        let mut progress = self.progress("importing");
        let mut transaction = connection.begin().await?;
        let mut chunks = self.chunks()?;
        let mut rows = 0;
        while let Some(chunk) = self.next(&mut chunks).await? {
            let writing = self.what.write(&mut transaction, &chunk.rows);
            report.add(tokio::select! {
                changed = writing => changed?,
                signal = self.stop.asked() => return Err(Problem::Stopped(signal)),
            });
            rows += chunk.rows.len() as u64;
            progress.advance(rows, chunk.end);
        }
        transaction.commit().await?;
        self.what.afterwards(connection, report.added).await?;
        Ok(())
    }

    async fn next(&self, chunks: &mut Chunks<I>) -> Result<Option<Chunk<I::Row>>, Problem> {
        tokio::select! {
            chunk = chunks.recv() => Ok(chunk.transpose()?),
            signal = self.stop.asked() => Err(Problem::Stopped(signal)),
        }
    }

    /// All rows, read on a thread of their own.
    fn chunks(&self) -> Result<Chunks<I>, Problem> {
        let (sender, chunks) = mpsc::channel(AHEAD);
        let (rows, what) = (self.file.rows()?, Arc::clone(&self.what));
        // Ends by itself: with the rows, or when nobody takes its chunks any more.
        drop(tokio::task::spawn_blocking(move || {
            let mut reading = Reading {
                rows,
                what,
                seen: HashMap::new(),
            };
            while let Some(chunk) = reading.chunk().transpose() {
                let is_last = chunk.is_err();
                if sender.blocking_send(chunk).is_err() || is_last {
                    break;
                }
            }
        }));
        Ok(chunks)
    }

    fn progress(&self, what: &'static str) -> Progress {
        Progress::new(what, self.file.bytes(), !self.args.json)
    }
}

/// Rows as they are read; an error is the last.
type Chunks<I> = mpsc::Receiver<Result<Chunk<<I as Imported>::Row>, FileError>>;

struct Chunk<R> {
    rows: Vec<R>,
    rejected: Vec<RowError>,
    /// The offset of the first byte after the last good row.
    end: u64,
}

struct Reading<I> {
    rows: TableRows,
    what: Arc<I>,
    /// The lines of what may stand there only once.
    seen: HashMap<String, u64>,
}

impl<I: Imported> Reading<I> {
    /// The next rows; `None` after the last.
    fn chunk(&mut self) -> Result<Option<Chunk<I::Row>>, FileError> {
        let mut chunk = Chunk {
            rows: Vec::new(),
            rejected: Vec::new(),
            end: 0,
        };
        while chunk.rows.len() + chunk.rejected.len() < CHUNK {
            let Some(row) = self.rows.next_row()? else {
                break;
            };
            let judged = row.and_then(|row| {
                chunk.end = row.end;
                let read = self.what.read(&row)?;
                once::<I>(&mut self.seen, &row, read)
            });
            match judged {
                Ok(row) => chunk.rows.push(row),
                Err(error) => chunk.rejected.push(error),
            }
        }
        let is_empty = chunk.rows.is_empty() && chunk.rejected.is_empty();
        Ok((!is_empty).then_some(chunk))
    }
}

fn once<I: Imported>(
    seen: &mut HashMap<String, u64>,
    row: &TableRow<'_>,
    read: I::Row,
) -> Result<I::Row, RowError> {
    let Some(key) = I::key(&read) else {
        return Ok(read);
    };
    let first = *seen.entry(key).or_insert(row.line);
    if first == row.line {
        return Ok(read);
    }
    let reason = format!("the same is said on line {first} already");
    Err(row.error("row", reason))
}
