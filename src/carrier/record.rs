//! The sandbox's record of what it accepted: one JSON object a line, without recipient and content.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use crate::dispatch::ports::Clock;
use crate::domain::Job;

/// A file that many tasks, and several processes, append whole lines to.
pub(super) struct Record {
    file: File,
    clock: Arc<dyn Clock>,
}

#[derive(Serialize)]
struct Line<'a> {
    at_us: i64,
    id: &'a str,
    account_id: &'a str,
    lane: &'static str,
    channel: &'static str,
    attempt: u32,
}

impl Record {
    pub(super) fn open(path: &Path, clock: Arc<dyn Clock>) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { file, clock })
    }

    /// Appends one line. It is written when this returns, so that a process that is killed then
    /// has lost none; and in a single write, because the operating system lets each write to a file
    /// opened for appending go to its end undivided, whoever else appends.
    pub(super) fn append(&self, job: &Job, attempt: u32) -> io::Result<()> {
        let mut line = Vec::with_capacity(192);
        let fields = Line {
            at_us: self.clock.now().as_microsecond(),
            id: job.head.id.as_str(),
            account_id: job.head.account.as_str(),
            lane: job.lane().as_str(),
            channel: job.channel.as_str(),
            attempt,
        };
        serde_json::to_writer(&mut line, &fields)?;
        line.push(b'\n');
        match (&self.file).write(&line)? {
            written if written == line.len() => Ok(()),
            _ => Err(io::ErrorKind::WriteZero.into()),
        }
    }
}
