//! A directory with files to queue, and the program to queue them with.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use lapin::options::BasicGetOptions;
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::support::queues::Queues;
use crate::support::rabbit::connection;
use crate::support::worker::signal;
use crate::support::{amqp_url, eventually, unique_prefix};

/// The batch of most runs.
pub const BATCH: &str = "spring";

/// A run may take this long; a machine that compiles at the same time is slow.
const LIMIT: Duration = Duration::from_secs(300);

/// A directory, and queues of its own.
pub struct Desk {
    directory: TempDir,
    pub amqp: String,
    pub prefix: String,
    settings: Vec<(&'static str, String)>,
}

/// A run that has ended.
#[derive(Debug)]
pub struct Ended {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    /// The summary with single blanks.
    pub fn summary(&self) -> String {
        let words: Vec<_> = self.stdout.split_whitespace().collect();
        words.join(" ")
    }

    /// The summary of a run with `--json`.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|_| panic!("one object: {self:?}"))
    }
}

impl Desk {
    /// On the shared broker.
    pub fn new(name: &str) -> Self {
        Self::on(name, amqp_url())
    }

    /// On this broker.
    pub fn on(name: &str, amqp: String) -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            amqp,
            prefix: unique_prefix(name),
            settings: Vec::new(),
        }
    }

    /// With another setting.
    pub fn set(mut self, name: &'static str, value: &str) -> Self {
        self.settings.push((name, value.to_owned()));
        self
    }

    /// A file of this content.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    /// A place for a file that is not there yet.
    pub fn place(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Where the state of a file's usual batch is kept.
    pub fn state_of(&self, file: &Path) -> PathBuf {
        let name = file.file_name().unwrap().to_str().unwrap();
        self.place(&format!("{name}.acme.{BATCH}.lanekeeper.json"))
    }

    /// The state of a file's usual batch, once there is one.
    pub fn state(&self, file: &Path) -> Option<Value> {
        let text = std::fs::read(self.state_of(file)).ok()?;
        Some(serde_json::from_slice(&text).unwrap())
    }

    /// How far the usual batch of a file has come.
    pub fn confirmed_line(&self, file: &Path) -> u64 {
        self.state(file)
            .map_or(0, |state| state["confirmed_line"].as_u64().unwrap())
    }

    /// The names of all files, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.directory.path()).unwrap();
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
        let mut names: Vec<_> = entries
            .map(|entry| name(entry).into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Starts the command with the usual options; what `more` gives again replaces them.
    pub fn start(&self, file: &str, more: &[&str]) -> Child {
        let mut usual = vec![
            ("--account", "acme"),
            ("--channel", "sms"),
            ("--origin", "campaign"),
            ("--batch", BATCH),
        ];
        usual.retain(|(name, _)| !more.contains(name));
        let usual = usual.iter().flat_map(|(name, value)| [*name, *value]);
        Command::new(env!("CARGO_BIN_EXE_lanekeeper"))
            .args(["enqueue", file])
            .args(usual)
            .args(more)
            .env_clear()
            .env("LANEKEEPER__AMQP__URL", &self.amqp)
            .env("LANEKEEPER__AMQP__PREFIX", &self.prefix)
            .envs(self.settings.iter().map(|(name, value)| (*name, value)))
            .current_dir(self.directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap()
    }

    /// Runs it on a file.
    pub async fn run(&self, file: &Path, more: &[&str]) -> Ended {
        ended(self.start(file.to_str().unwrap(), more)).await
    }

    /// Runs it on what comes through a pipe.
    pub async fn pipe(&self, content: &str, more: &[&str]) -> Ended {
        let mut child = self.start("-", more);
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(content.as_bytes()).await.unwrap();
        drop(stdin);
        ended(child).await
    }

    /// Starts it on a file and sends a signal when so many lines are confirmed.
    pub async fn run_until(&self, file: &Path, more: &[&str], line: u64, name: &str) -> Ended {
        let child = self.start(file.to_str().unwrap(), more);
        let what = format!("line {line} is confirmed");
        eventually(&what, LIMIT, async || self.confirmed_line(file) >= line).await;
        signal(child.id().unwrap(), name);
        ended(child).await
    }

    /// The jobs in a lane's queue, taken out of it.
    pub async fn take_jobs(&self, lane: &str) -> Vec<Value> {
        let messages = self.take_messages(lane).await;
        let jobs = messages
            .iter()
            .map(|message| serde_json::from_slice(message));
        jobs.collect::<Result<_, _>>().unwrap()
    }

    /// The messages in a lane's queue, taken out of it.
    pub async fn take_messages(&self, lane: &str) -> Vec<Vec<u8>> {
        let connection = connection(&self.amqp).await;
        let channel = connection.create_channel().await.unwrap();
        let queue = format!("{}.{lane}", self.prefix);
        let get = BasicGetOptions { no_ack: true };
        let mut messages = Vec::new();
        while let Some(message) = channel.basic_get(queue.as_str().into(), get).await.unwrap() {
            assert_eq!(message.properties.delivery_mode(), &Some(2));
            messages.push(message.delivery.data);
        }
        messages
    }

    /// How many messages are in a lane's queue.
    pub async fn queued(&self, lane: &str) -> usize {
        self.queues().await.ready(lane).await
    }

    pub async fn queues(&self) -> Queues {
        Queues::connect(&self.amqp, &self.prefix).await
    }

    /// Removes what it left in the broker.
    pub async fn end(self) {
        self.queues().await.remove().await;
    }
}

/// Waits for a run's end.
pub async fn ended(mut child: Child) -> Ended {
    drop(child.stdin.take());
    let output = timeout(LIMIT, child.wait_with_output()).await;
    let output = output.expect("it ends").unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended {
        // As a shell has it, where a signal has ended it.
        code: output.status.code().unwrap_or(-1),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// JSON lines, each with a recipient of its own.
pub fn rows(count: usize) -> String {
    let mut rows = String::with_capacity(count * 64);
    for number in 0..count {
        let to = recipient(number);
        writeln!(rows, r#"{{"to":"{to}","body":"message {number}"}}"#).unwrap();
    }
    rows
}

/// A number that no other row has.
pub fn recipient(number: usize) -> String {
    format!("+4479{:08}", 10_000_000 + number)
}

/// The ids of jobs, in order.
pub fn ids(jobs: &[Value]) -> Vec<&str> {
    jobs.iter().map(|job| job["id"].as_str().unwrap()).collect()
}
