//! Programs in other languages: those of docs/PUBLISHING.md, run as the page shows them, and where
//! the libraries of all of them are.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

/// The page.
const PAGE: &str = include_str!("../../../docs/PUBLISHING.md");

/// A program must have ended, or said something, within this.
const LIMIT: Duration = Duration::from_secs(60);

/// What the page has programs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    Rust,
    Python,
    Node,
}

impl Language {
    pub const ALL: [Self; 3] = [Self::Rust, Self::Python, Self::Node];
}

/// The text of a program on the page: the fenced block below its name.
pub fn on_the_page(name: &str) -> &'static str {
    let below = PAGE.split_once(&format!("\n`{name}`:\n\n```")).unwrap().1;
    let block = below.split_once("\n```").unwrap().0;
    block.split_once('\n').unwrap().1
}

/// Where scripts install what tests need in other languages.
fn clients() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = std::env::var_os("CARGO_TARGET_DIR");
    let target = target.map_or_else(|| root.join("target"), |target| root.join(target));
    target.join("clients")
}

/// Where one of these things is.
///
/// # Panics
/// When `script` has not been run.
pub fn installed(library: &str, script: &str) -> PathBuf {
    let library = clients().join(library);
    let shown = library.display();
    assert!(library.exists(), "no {shown}: run {script}");
    library
}

/// The page's programs as files, and where they find their libraries.
pub struct Programs {
    directory: TempDir,
    clients: PathBuf,
}

/// Where a program publishes or listens.
#[derive(Debug, Clone)]
pub struct Place {
    pub url: String,
    pub prefix: String,
}

impl Programs {
    pub fn written() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for name in ["publish.py", "publish.js", "listen.py", "listen.js"] {
            let text = format!("{}\n", on_the_page(name));
            std::fs::write(directory.path().join(name), text).unwrap();
        }
        for library in ["python/pika", "node/node_modules/amqplib"] {
            installed(library, "scripts/clients.sh");
        }
        Self {
            directory,
            clients: clients(),
        }
    }

    fn command(&self, interpreter: &str, file: &str, place: &Place) -> Command {
        let mut command = command(interpreter, place);
        command
            .arg(self.directory.path().join(file))
            .env("PYTHONPATH", self.clients.join("python"))
            .env("NODE_PATH", self.clients.join("node/node_modules"));
        command
    }

    /// Publishes the page's job with this id; gives what the program said of an error.
    pub async fn publish(&self, language: Language, place: &Place, id: &str) -> Result<(), String> {
        match language {
            Language::Rust => run(command(example(), place).arg(id)).await,
            Language::Python => run(self.command("python3", "publish.py", place).arg(id)).await,
            Language::Node => run(self.command("node", "publish.js", place).arg(id)).await,
        }
    }

    /// Starts a program that listens for outcomes, on a queue of its own.
    pub fn listen(&self, language: Language, place: &Place, queue: &str) -> Listener {
        let mut command = match language {
            Language::Rust => unreachable!("the page has no listener in Rust"),
            Language::Python => self.command("python3", "listen.py", place),
            Language::Node => self.command("node", "listen.js", place),
        };
        let mut child = command.env("QUEUE", queue).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Listener { child, lines }
    }
}

fn command(program: impl AsRef<OsStr>, place: &Place) -> Command {
    let mut command = Command::new(program);
    command
        .env("LANEKEEPER__AMQP__URL", &place.url)
        .env("LANEKEEPER__AMQP__PREFIX", &place.prefix)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// The client's example, which is built for every run of the tests of the whole workspace.
fn example() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let profile = tests.ancestors().nth(2).expect("it is in `deps`");
    let example = profile.join("examples/publish");
    let shown = example.display();
    assert!(
        example.exists(),
        "no {shown}: run cargo build --workspace --examples"
    );
    example
}

/// Runs a program to its end; the error is what it wrote to standard error.
async fn run(command: &mut Command) -> Result<(), String> {
    let ended = timeout(LIMIT, command.output()).await;
    let output = ended.expect("the program ends in time").unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        let said = text(&output.stdout);
        assert!(said.starts_with("stored: "), "{said}");
        return Ok(());
    }
    Err(text(&output.stderr))
}

/// A program that listens for outcomes.
pub struct Listener {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Listener {
    /// The next line that it prints.
    pub async fn line(&mut self) -> String {
        let line = timeout(LIMIT, self.lines.next_line()).await;
        let line = line.expect("the listener says something in time").unwrap();
        line.expect("the listener goes on")
    }

    /// Ends it, and waits for its end.
    pub async fn end(mut self) {
        self.child.kill().await.unwrap();
    }

    /// What it writes to standard error before it fails.
    pub async fn failure(self) -> String {
        let output = timeout(LIMIT, self.child.wait_with_output()).await;
        let output = output.expect("the listener ends in time").unwrap();
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    }
}
