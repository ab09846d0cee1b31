//! Redis servers for tests: the shared one, and private ones that a test may break.

use std::process::Stdio;
use std::time::Duration;

use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use super::worker::{free_port, signal};

/// A private server on a free port. It is killed when dropped.
pub struct RedisServer {
    port: u16,
    directory: TempDir,
    arguments: Vec<String>,
    child: Child,
}

impl RedisServer {
    /// Starts a server and waits until it answers.
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// As [`RedisServer::start`], with further arguments such as `--requirepass secret`.
    pub async fn start_with(arguments: &[&str]) -> Self {
        let port = free_port();
        let directory = tempfile::tempdir().unwrap();
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let child = launch(port, &directory, &arguments);
        let server = Self {
            port,
            directory,
            arguments,
            child,
        };
        server.wait_until_up().await;
        server
    }

    /// Its URL, without credentials.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Kills it; its memory is lost.
    pub async fn stop(&mut self) {
        self.child.kill().await.unwrap();
    }

    /// Starts it again on the same port, empty, and waits until it answers.
    pub async fn restart(&mut self) {
        let _ = self.child.kill().await;
        self.child = launch(self.port, &self.directory, &self.arguments);
        self.wait_until_up().await;
    }

    /// Stops it in its tracks: connections stay open and nothing answers.
    pub fn freeze(&self) {
        self.signal("STOP");
    }

    /// Lets a frozen server go on.
    pub fn thaw(&self) {
        self.signal("CONT");
    }

    /// What `redis-cli` answers.
    pub async fn cli(&self, arguments: &[&str]) -> String {
        let output = Command::new("redis-cli")
            .args(["-p", &self.port.to_string()])
            .args(arguments)
            .output()
            .await
            .unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn signal(&self, name: &str) {
        signal(self.child.id().expect("a running server has an id"), name);
    }

    async fn wait_until_up(&self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            // A server with a password refuses the PING, but it is up.
            let answer = self.cli(&["PING"]).await;
            if answer == "PONG" || answer.starts_with("NOAUTH") {
                return;
            }
            assert!(Instant::now() < deadline, "redis-server does not answer");
            sleep(Duration::from_millis(10)).await;
        }
    }
}

fn launch(port: u16, directory: &TempDir, arguments: &[String]) -> Child {
    Command::new("redis-server")
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
        .args(["--save", "", "--appendonly", "no", "--dir"])
        .arg(directory.path())
        .args(arguments)
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("redis-server is installed")
}
