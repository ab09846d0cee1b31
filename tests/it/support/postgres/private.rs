//! A server that a test may break.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use lanekeeper::postgres::{self, Database};
use sqlx::postgres::{PgConnection, PgPool};
use sqlx::{Connection as _, Executor as _};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use super::super::worker::{free_port, signal};
use super::{connection, database_settings, pool};

/// A private server on a free port, with an empty database `lanekeeper`. It ends when dropped.
pub struct PrivatePostgres {
    port: u16,
    directory: TempDir,
    server: Option<Child>,
    frozen: bool,
}

impl PrivatePostgres {
    /// Starts a server with an empty database, and waits until it answers.
    pub async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        give_away(directory.path());
        let made = program("initdb", directory.path())
            .args(["--pgdata", "data", "--no-sync", "--auth", "trust"])
            .args(["--encoding", "UTF8", "--locale", "C.UTF-8"])
            .args(["--username", USER])
            .output();
        let made = made.await.unwrap();
        let said = String::from_utf8_lossy(&made.stderr).into_owned();
        assert!(made.status.success(), "initdb: {said}");
        let mut server = Self {
            port: free_port(),
            directory,
            server: None,
            frozen: false,
        };
        server.launch().await;
        let mut maintenance = connection(&server.url_of("postgres")).await;
        let create = "CREATE DATABASE lanekeeper";
        maintenance.execute(create).await.unwrap();
        maintenance.close().await.unwrap();
        server
    }

    /// The same with the whole schema.
    pub async fn start_migrated() -> Self {
        let server = Self::start().await;
        let mut inside = connection(&server.url()).await;
        postgres::migrate(&mut inside).await.unwrap();
        inside.close().await.unwrap();
        server
    }

    /// The URL of its database; no password is asked for.
    pub fn url(&self) -> String {
        self.url_of("lanekeeper")
    }

    /// The same for another user.
    pub fn url_as(&self, user: &str) -> String {
        format!("postgres://{user}@127.0.0.1:{}/lanekeeper", self.port)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A pool of connections to it, without any of the program's limits.
    pub fn pool(&self) -> PgPool {
        pool(&self.url())
    }

    /// The program's view of it.
    pub fn database(&self) -> Database {
        Database::open(&database_settings(&self.url())).unwrap()
    }

    /// Ends it at once: connections are closed, and nobody listens. What was committed stays.
    pub async fn stop(&mut self) {
        self.thaw();
        if let Some(mut server) = self.server.take() {
            signal(server.id().expect("it runs"), "QUIT");
            server.wait().await.unwrap();
        }
    }

    /// Starts it again on the same port and data, and waits until it answers.
    pub async fn restart(&mut self) {
        self.stop().await;
        self.launch().await;
    }

    /// Stops it in its tracks: connections stay open, new ones are taken by the system, and nothing
    /// answers.
    pub fn freeze(&mut self) {
        self.frozen = true;
        self.signal_all("STOP");
    }

    /// Lets it go on.
    pub fn thaw(&mut self) {
        if std::mem::take(&mut self.frozen) {
            self.signal_all("CONT");
        }
    }

    fn url_of(&self, database: &str) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/{database}", self.port)
    }

    /// Signals the server, and then its children: one for each connection and some of its own.
    fn signal_all(&self, name: &str) {
        let Some(server) = self.server.as_ref().and_then(Child::id) else {
            return;
        };
        let children = format!("/proc/{server}/task/{server}/children");
        // A child may have ended by itself meanwhile.
        let command = format!("kill -{name} {server} && kill -{name} $(cat {children}) || true");
        let status = std::process::Command::new("sh")
            .args(["-c", &command])
            .stderr(Stdio::null())
            .status();
        assert!(status.unwrap().success(), "{command}");
    }

    async fn launch(&mut self) {
        let log = self.directory.path().join("log");
        let mut command = program("postgres", self.directory.path());
        command
            .args(["-D", "data", "-c", "listen_addresses=127.0.0.1"])
            .args(["-p", &self.port.to_string()])
            .args(["-c", "unix_socket_directories=", "-c", "fsync=off"])
            .stderr(std::fs::File::create(&log).unwrap())
            .kill_on_drop(true);
        self.server = Some(command.spawn().unwrap());
        let deadline = Instant::now() + Duration::from_secs(60);
        let url = self.url_of("postgres");
        while PgConnection::connect(&url).await.is_err() {
            let said = || std::fs::read_to_string(&log).unwrap_or_default();
            assert!(Instant::now() < deadline, "no PostgreSQL: {}", said());
            sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for PrivatePostgres {
    /// Killed as its handle is dropped, its children would outlive it for a moment; told to quit, it
    /// ends them.
    fn drop(&mut self) {
        self.thaw();
        let Some(mut server) = self.server.take() else {
            return;
        };
        let Some(id) = server.id() else {
            return;
        };
        signal(id, "QUIT");
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        while matches!(server.try_wait(), Ok(None)) && std::time::Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The superuser of private servers.
const USER: &str = "lanekeeper";

/// Where Debian keeps the server, one directory per version.
const DEBIAN_ROOT: &str = "/usr/lib/postgresql";

/// One of the server's programs, to be run in `directory`. The server refuses to run as root.
fn program(name: &str, directory: &Path) -> Command {
    let installed = std::fs::read_dir(DEBIAN_ROOT)
        .into_iter()
        .flatten()
        .flatten();
    let candidates = installed.map(|entry| entry.path().join("bin").join(name));
    let found = candidates.filter(|path| path.exists()).max();
    let mut command = Command::new(found.unwrap_or_else(|| PathBuf::from(name)));
    if let Some((user, group)) = unprivileged() {
        command.uid(user).gid(group);
    }
    command
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

/// Lets the server's user write there.
fn give_away(directory: &Path) {
    if let Some((user, group)) = unprivileged() {
        std::os::unix::fs::chown(directory, Some(user), Some(group)).unwrap();
    }
}

/// For root: the user and group that the server runs as.
fn unprivileged() -> Option<(u32, u32)> {
    use std::os::unix::fs::MetadataExt as _;
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap();
    let ids = |name: &str| {
        let line = users
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        let mut cells = line.split(':').skip(1);
        Some((cells.next()?.parse().ok()?, cells.next()?.parse().ok()?))
    };
    ids("postgres").or_else(|| ids("nobody"))
}
