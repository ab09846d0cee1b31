//! PostgreSQL for tests: a database of one's own on the shared server, and private servers that a
//! test may break.

mod private;

use std::time::Duration;

use lanekeeper::digest::Digest;
use lanekeeper::postgres::{self, Database, MIGRATIONS};
use lanekeeper::settings::{self, PostgresUrl};
use sqlx::postgres::{PgConnection, PgPool, PgPoolOptions};
use sqlx::{Connection as _, Executor as _};
use tokio::time::timeout;
use url::Url;

use super::unique_prefix;

pub use private::PrivatePostgres;

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

    /// One that keeps texts in an encoding which does not know them all.
    pub async fn in_latin1() -> Self {
        Self::made_by("TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'").await
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
