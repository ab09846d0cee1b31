//! PostgreSQL for tests: a database of one's own on the shared server, and private servers that a
//! test may break.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use lanekeeper::digest::Digest;
use lanekeeper::postgres::{self, Database, MIGRATIONS};
use lanekeeper::settings::{self, PostgresUrl};
use sqlx::postgres::{PgConnection, PgPool, PgPoolOptions};
use sqlx::{Connection as _, Executor as _};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};
use url::Url;

use super::unique_prefix;
use super::worker::{free_port, signal};

/// The shared server.
pub fn database_url() -> String {
    std::env::var("LANEKEEPER_TEST_DATABASE_URL")
        .unwrap_or_else(|_| "postgres://lanekeeper:lanekeeper@127.0.0.1:5432/lanekeeper".to_owned())
}

/// What `[database]` says by default, for this URL.
pub fn database_settings(url: &str) -> settings::Database {
    settings::Database {
        url: PostgresUrl::parse(url).unwrap(),
        connect_timeout: Duration::from_secs(2),
        timeout: Duration::from_secs(1),
        connections: 8,
        migrate: false,
    }
}

/// A database of one test on the shared server, dropped with the value.
pub struct TestDatabase {
    name: String,
    url: String,
    pool: PgPool,
}

impl TestDatabase {
    /// One with the whole schema.
    pub async fn create() -> Self {
        let template = template().await;
        Self::made_by(&format!("TEMPLATE {template}")).await
    }

    /// One without any table.
    pub async fn empty() -> Self {
        Self::made_by("TEMPLATE template0").await
    }

    async fn made_by(how: &str) -> Self {
        let name = unique_prefix("db").replace('-', "_");
        let mut server = connection(&database_url()).await;
        let statement = format!("CREATE DATABASE {name} {how}");
        server.execute(statement.as_str()).await.unwrap();
        server.close().await.unwrap();
        let url = with_database(&database_url(), &name);
        Self {
            name,
            pool: pool(&url),
            url,
        }
    }

    /// Its URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A pool of connections to it, without any of the program's limits.
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// The program's view of it.
    pub fn database(&self) -> Database {
        Database::open(&database_settings(&self.url)).unwrap()
    }

    /// Runs statements, which must succeed.
    pub async fn execute(&self, statements: &str) {
        self.pool.execute(statements).await.unwrap();
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let name = self.name.clone();
        // In a runtime of its own: the test's may be on its way out.
        let dropping = std::thread::spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            runtime.enable_all().build().unwrap().block_on(async {
                let mut server = connection(&database_url()).await;
                let statement = format!("DROP DATABASE {name} WITH (FORCE)");
                server.execute(statement.as_str()).await.unwrap();
            });
        });
        // A second panic while one is reported would abort all other tests.
        let dropped = dropping.join();
        assert!(dropped.is_ok() || std::thread::panicking());
    }
}

/// The name of a database with the whole schema, which later ones are copied from. Its name is that
/// of the migrations' content, so that a change of them gives another; it stays for the next run.
async fn template() -> String {
    let content: Vec<u8> = MIGRATIONS
        .iter()
        .flat_map(|one| one.checksum.iter().copied())
        .collect();
    let name = format!(
        "lanekeeper_template_{:.12}",
        Digest::of(&content).to_string()
    );
    let mut server = connection(&database_url()).await;
    // Other tests of this or another process may want it at the same time.
    server
        .execute("SELECT pg_advisory_lock(7405293)")
        .await
        .unwrap();
    let found = sqlx::query("SELECT 1 FROM pg_database WHERE datname = $1").bind(&name);
    if found.fetch_optional(&mut server).await.unwrap().is_none() {
        make_template(&mut server, &name).await;
    }
    server.close().await.unwrap();
    name
}

async fn make_template(server: &mut PgConnection, name: &str) {
    let making = format!("{name}_in_the_making");
    for statement in [
        format!("DROP DATABASE IF EXISTS {making} WITH (FORCE)"),
        format!("CREATE DATABASE {making} TEMPLATE template0"),
    ] {
        server.execute(statement.as_str()).await.unwrap();
    }
    let url = with_database(&database_url(), &making);
    let mut inside = connection(&url).await;
    postgres::migrate(&mut inside).await.unwrap();
    inside.close().await.unwrap();
    // Renamed last: who finds the name finds the whole schema. Nobody may connect to what is copied.
    for statement in [
        format!("ALTER DATABASE {making} ALLOW_CONNECTIONS false"),
        format!("ALTER DATABASE {making} RENAME TO {name}"),
    ] {
        server.execute(statement.as_str()).await.unwrap();
    }
}

fn with_database(url: &str, name: &str) -> String {
    let mut url = Url::parse(url).unwrap();
    url.set_path(name);
    url.into()
}

fn pool(url: &str) -> PgPool {
    let options = PgPoolOptions::new().max_connections(4);
    options.connect_lazy(url).unwrap()
}

async fn connection(url: &str) -> PgConnection {
    let connecting = timeout(Duration::from_secs(20), PgConnection::connect(url));
    let connected = connecting.await.expect("PostgreSQL answers in time");
    connected.expect("PostgreSQL answers: scripts/services.sh up test")
}

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
        let settings = [
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={}", self.port),
            "unix_socket_directories=".to_owned(),
            "fsync=off".to_owned(),
            "max_connections=100".to_owned(),
        ];
        let log = self.directory.path().join("log");
        let mut command = program("postgres", self.directory.path());
        command.args(["-D", "data"]);
        for setting in settings {
            command.args(["-c", &setting]);
        }
        let log_file = std::fs::File::create(&log).unwrap();
        command.stderr(log_file).kill_on_drop(true);
        self.server = Some(command.spawn().unwrap());
        let deadline = Instant::now() + Duration::from_secs(60);
        while PgConnection::connect(&self.url_of("postgres"))
            .await
            .is_err()
        {
            let said = || std::fs::read_to_string(&log).unwrap_or_default();
            assert!(Instant::now() < deadline, "no PostgreSQL: {}", said());
            sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for PrivatePostgres {
    fn drop(&mut self) {
        self.thaw();
        if let Some(server) = self.server.as_ref().and_then(Child::id) {
            // Killed as its handle is dropped, its children would outlive it for a moment; told to
            // quit, it ends them.
            signal(server, "QUIT");
            let deadline = std::time::Instant::now() + Duration::from_secs(10);
            let ended = |child: &mut Child| child.try_wait().is_ok_and(|status| status.is_some());
            while !self.server.as_mut().is_none_or(ended) && std::time::Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(10));
            }
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
