//! Brokers for tests: the shared one, and private ones that may be broken at will.

use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use lapin::{Connection, ConnectionProperties};
use tempfile::TempDir;

use super::busy;
use super::worker::{free_port, processor_time, signal};

/// How long a private node may take to start.
const START_LIMIT: Duration = Duration::from_secs(90);

/// Where Debian's package keeps the server and its tools, and where others look first.
const DEBIAN_ROOT: &str = "/usr/lib/rabbitmq/lib";

/// A plain connection, as a publisher or a curious operator has one.
pub async fn connection(url: &str) -> Connection {
    let name = "a test".into();
    let properties = ConnectionProperties::default().with_connection_name(name);
    Connection::connect(url, properties).await.unwrap()
}

/// A private broker node, ended with its port mapper when it goes out of scope.
pub struct Rabbit {
    directory: TempDir,
    node: String,
    amqp_port: u16,
    distribution_port: u16,
    epmd_port: u16,
    port_mapper: Child,
    server: Option<Child>,
    frozen: bool,
}

impl Rabbit {
    /// Starts a node and waits until it serves.
    pub async fn start() -> Self {
        Self::start_with("[].\n", "").await
    }

    /// The same, with the node's metrics served on a port of its own.
    pub async fn start_with_metrics() -> (Self, u16) {
        let port = free_port();
        let listen = format!("prometheus.tcp.ip = 127.0.0.1\nprometheus.tcp.port = {port}\n");
        let rabbit = Self::start_with("[rabbitmq_prometheus].\n", &listen).await;
        (rabbit, port)
    }

    async fn start_with(plugins: &str, configuration: &str) -> Self {
        let [amqp_port, distribution_port, epmd_port] = [(); 3].map(|()| free_port());
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(".erlang.cookie"), "LANEKEEPERTEST").unwrap();
        restrict(&directory.path().join(".erlang.cookie"));
        let configuration = CONFIGURATION.to_owned() + configuration;
        std::fs::write(directory.path().join("rabbitmq.conf"), configuration).unwrap();
        std::fs::write(directory.path().join("enabled_plugins"), plugins).unwrap();
        let mut rabbit = Self {
            node: format!("lanekeeper{amqp_port}@localhost"),
            directory,
            amqp_port,
            distribution_port,
            epmd_port,
            port_mapper: port_mapper(epmd_port),
            server: None,
            frozen: false,
        };
        let _busy = busy().await;
        rabbit.launch().await;
        rabbit
    }

    /// The node's URL.
    pub fn url(&self) -> String {
        format!("amqp://guest:guest@127.0.0.1:{}", self.amqp_port)
    }

    /// The node's URL with other credentials and virtual host, written as given.
    pub fn url_with(&self, credentials: &str, vhost: &str) -> String {
        format!("amqp://{credentials}@127.0.0.1:{}{vhost}", self.amqp_port)
    }

    /// The processor time that the node has used since it was last started.
    pub fn cpu(&self) -> Duration {
        processor_time(self.server.as_ref().expect("it runs").id())
    }

    /// Runs the node's control tool, which must succeed; gives what it printed.
    pub async fn ctl(&self, arguments: &[&str]) -> String {
        let output = self.try_ctl(arguments).await;
        assert!(
            output.status.success(),
            "rabbitmqctl {arguments:?}: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    async fn try_ctl(&self, arguments: &[&str]) -> Output {
        let mut command = self.command("rabbitmqctl");
        command
            .args(["--quiet", "--node", &self.node])
            .args(arguments);
        tokio::task::spawn_blocking(move || command.output().unwrap())
            .await
            .unwrap()
    }

    /// Ends the broker inside its node, which closes every connection.
    pub async fn stop_app(&self) {
        self.ctl(&["stop_app"]).await;
    }

    /// Starts it again.
    pub async fn start_app(&self) {
        self.ctl(&["start_app"]).await;
    }

    /// Ends the node at once, as a power cut would.
    pub fn kill(&mut self) {
        self.thaw();
        if let Some(mut server) = self.server.take() {
            signal(server.id(), "KILL");
            server.wait().unwrap();
        }
    }

    /// Kills the node and starts it again on the same ports and data.
    pub async fn restart(&mut self) {
        self.kill();
        self.launch().await;
    }

    /// Kills the node and starts an empty one on the same ports.
    pub async fn restart_empty(&mut self) {
        self.kill();
        std::fs::remove_dir_all(self.directory.path().join("mnesia")).unwrap();
        self.launch().await;
    }

    /// Stops every thread of the node, without closing anything.
    pub fn freeze(&mut self) {
        self.frozen = true;
        if let Some(server) = &self.server {
            signal(server.id(), "STOP");
        }
    }

    /// Lets it go on.
    pub fn thaw(&mut self) {
        if std::mem::take(&mut self.frozen)
            && let Some(server) = &self.server
        {
            signal(server.id(), "CONT");
        }
    }

    /// Raises the memory alarm: the broker stops reading whoever has published.
    pub async fn raise_memory_alarm(&self) {
        self.ctl(&["set_vm_memory_high_watermark", "0.0000001"])
            .await;
    }

    /// Clears it.
    pub async fn clear_memory_alarm(&self) {
        self.ctl(&["set_vm_memory_high_watermark", "0.9"]).await;
    }

    /// The rows of a `list_…` command, split at tabs.
    pub async fn list(&self, arguments: &[&str]) -> Vec<Vec<String>> {
        let mut all = vec!["--no-table-headers"];
        all.extend(arguments);
        let text = self.ctl(&all).await;
        let cells = |line: &str| line.split('\t').map(str::to_owned).collect();
        text.lines().map(cells).collect()
    }

    async fn launch(&mut self) {
        let log = std::fs::File::create(self.directory.path().join("server.log")).unwrap();
        let mut command = self.command("rabbitmq-server");
        command.stdout(log.try_clone().unwrap()).stderr(log);
        self.server = Some(command.spawn().unwrap());
        let deadline = Instant::now() + START_LIMIT;
        loop {
            let url = self.url();
            let properties = ConnectionProperties::default();
            let attempt = Connection::connect(&url, properties);
            if let Ok(Ok(connection)) = tokio::time::timeout(Duration::from_secs(5), attempt).await
            {
                drop(connection.close(200, "up".into()).await);
                return;
            }
            let log = || std::fs::read_to_string(self.directory.path().join("server.log"));
            assert!(
                Instant::now() < deadline,
                "no broker: {}",
                log().unwrap_or_default()
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// A tool of the installation, in this node's environment.
    fn command(&self, tool: &str) -> Command {
        let home = self.directory.path();
        let mut command = Command::new(tool_path(tool));
        command
            .stdin(Stdio::null())
            .env("HOME", home)
            .env("ERL_EPMD_PORT", self.epmd_port.to_string())
            .env("ERL_EPMD_ADDRESS", "127.0.0.1")
            .env("RABBITMQ_NODENAME", &self.node)
            .env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1")
            .env("RABBITMQ_NODE_PORT", self.amqp_port.to_string())
            .env("RABBITMQ_DIST_PORT", self.distribution_port.to_string())
            .env("RABBITMQ_CONFIG_FILE", home.join("rabbitmq"))
            .env("RABBITMQ_CONF_ENV_FILE", home.join("none.conf"))
            .env(
                "RABBITMQ_ENABLED_PLUGINS_FILE",
                home.join("enabled_plugins"),
            )
            .env("RABBITMQ_MNESIA_BASE", home.join("mnesia"))
            .env("RABBITMQ_LOG_BASE", home.join("log"))
            .env("RABBITMQ_LOGS", "-")
            // Makes the wrapper become the node rather than its parent, so that signals reach it.
            .env("RUNNING_UNDER_SYSTEMD", "true")
            .env("RABBITMQ_PID_FILE", home.join("pid"))
            .env("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", "+S 2:2 +sbwt none");
        command
    }
}

impl Drop for Rabbit {
    fn drop(&mut self) {
        self.kill();
        // Both fail only when it has ended already.
        let _ = self.port_mapper.kill();
        let _ = self.port_mapper.wait();
    }
}

/// Starts Erlang's port mapper as a child of this process. A node would start one by itself, but
/// one that outlives it.
fn port_mapper(port: u16) -> Child {
    let mut command = Command::new("epmd");
    command
        .args(["-port", &port.to_string(), "-address", "127.0.0.1"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let child = command.spawn().expect("Erlang's epmd is installed");
    let deadline = Instant::now() + Duration::from_secs(10);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < deadline, "epmd does not listen");
        std::thread::sleep(Duration::from_millis(10));
    }
    child
}

/// Little memory and little patience for clients that log nothing of use in tests.
const CONFIGURATION: &str = "\
loopback_users.guest = true
log.console.level = warning
vm_memory_high_watermark.relative = 0.9
disk_free_limit.absolute = 1MB
";

/// Debian's wrappers change the user, so its tools are called where they really are.
fn tool_path(tool: &str) -> PathBuf {
    let installed = std::fs::read_dir(DEBIAN_ROOT)
        .into_iter()
        .flatten()
        .flatten();
    let candidates = installed.map(|entry| entry.path().join("sbin").join(tool));
    let found = candidates.filter(|path| path.exists()).max();
    found.unwrap_or_else(|| PathBuf::from(tool))
}

fn restrict(path: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}
