//! A database of its own, and the program to lay things down in it with.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::support::postgres::TestDatabase;

/// A command may take this long; a machine that compiles at the same time is slow.
const LIMIT: Duration = Duration::from_secs(120);

pub struct Desk {
    pub database: TestDatabase,
    directory: TempDir,
}

/// A command that has ended.
#[derive(Debug)]
pub struct Ended {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    /// Waits for it.
    pub async fn of(child: Child) -> Self {
        let output = timeout(LIMIT, child.wait_with_output()).await;
        let output = output.expect("the command ends in time").unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Self {
            code: output.status.code().expect("no signal ended it"),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }

    /// What was printed, with single blanks.
    pub fn words(&self) -> String {
        self.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// One JSON object for each line.
    pub fn json(&self) -> Vec<Value> {
        let lines = self.stdout.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("JSON: {self:?}")))
            .collect()
    }
}

impl Desk {
    pub async fn new() -> Self {
        Self {
            database: TestDatabase::create().await,
            directory: tempfile::tempdir().unwrap(),
        }
    }

    /// A file of this content, by its path.
    pub fn file(&self, name: &str, content: &str) -> String {
        let path: PathBuf = self.directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Runs a command, its words separated by blanks.
    pub async fn run(&self, words: &str) -> Ended {
        let words: Vec<_> = words.split_whitespace().collect();
        self.with(&words, "").await
    }

    /// Runs a command that must succeed.
    pub async fn ok(&self, words: &str) -> Ended {
        let ended = self.run(words).await;
        assert_eq!((ended.code, &*ended.stderr), (0, ""), "{words}: {ended:?}");
        ended
    }

    /// Starts a command.
    pub fn start(&self, words: &str) -> Child {
        let words: Vec<_> = words.split_whitespace().collect();
        started(self.database.url(), &words)
    }

    /// Runs a command with this on its standard input.
    pub async fn with(&self, arguments: &[&str], input: &str) -> Ended {
        ended(self.database.url(), arguments, input).await
    }
}

/// A command on the database that the URL leads to, or, if it is empty, without one.
fn started(url: &str, arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lanekeeper"));
    command
        .args(arguments)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    if !url.is_empty() {
        command.env("LANEKEEPER__DATABASE__URL", url);
    }
    command.spawn().unwrap()
}

/// Runs a command to its end, with this on its standard input.
pub async fn ended(url: &str, arguments: &[&str], input: &str) -> Ended {
    let mut child = started(url, arguments);
    let mut stdin = child.stdin.take().unwrap();
    // A command that wants no input may have ended before it.
    let _ = stdin.write_all(input.as_bytes()).await;
    drop(stdin);
    Ended::of(child).await
}
