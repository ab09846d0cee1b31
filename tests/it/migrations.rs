//! The schema: brought up to date once, however many want it, and only as far as it is known.

use std::process::{Output, Stdio};
use std::time::Duration;

use futures_util::future::join_all;
use lanekeeper::postgres::{self, MIGRATIONS};
use serde_json::Value;
use sqlx::Executor as _;
use tokio::process::Command;
use tokio::time::timeout;

use crate::support::busy;
use crate::support::postgres::{PrivatePostgres, TestDatabase, database_settings};

/// How long a command may take.
const LIMIT: Duration = Duration::from_secs(60);

/// How many replicas start together.
const REPLICAS: usize = 10;

async fn lanekeeper(arguments: &[&str], url: Option<&str>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lanekeeper"));
    let command = command
        .args(arguments)
        .env_clear()
        .envs(url.map(|url| ("LANEKEEPER__DATABASE__URL", url)))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    timeout(LIMIT, command).await.expect("it ends").unwrap()
}

/// What `migrate --json` reports, having succeeded.
async fn migrate(arguments: &[&str], url: &str) -> Value {
    let arguments = [&["migrate", "--json"], arguments].concat();
    let output = lanekeeper(&arguments, Some(url)).await;
    assert!(output.status.success(), "{}", errors(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn errors(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn versions(report: &Value, which: &str) -> Vec<i64> {
    let steps = report[which].as_array().unwrap().iter();
    steps
        .map(|step| step["version"].as_i64().unwrap())
        .collect()
}

fn known() -> Vec<i64> {
    MIGRATIONS.iter().map(|one| one.version).collect()
}

/// The numbers of the applied migrations, each as often as it is written down.
async fn written_down(database: &TestDatabase) -> Vec<i64> {
    let query = sqlx::query_scalar("SELECT version FROM _sqlx_migrations ORDER BY version");
    query.fetch_all(database.pool()).await.unwrap()
}

async fn tables(database: &TestDatabase) -> i64 {
    let query = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
    let query = sqlx::query_scalar(query);
    query.fetch_one(database.pool()).await.unwrap()
}

/// One job with a text that it does not know would stop all others.
#[tokio::test]
async fn a_database_that_does_not_know_every_text_is_refused() {
    let database = TestDatabase::in_latin1().await;
    for command in ["migrate", "check"] {
        let output = lanekeeper(&[command], Some(database.url())).await;
        let said = errors(&output) + &String::from_utf8(output.stdout).unwrap();
        assert!(!output.status.success(), "{command}");
        assert!(said.contains("keeps texts in LATIN1"), "{command}: {said}");
    }
    assert_eq!(tables(&database).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_ten_processes_that_start_together_one_migrates_and_all_succeed() {
    let _busy = busy().await;
    for _ in 0..3 {
        let database = TestDatabase::empty().await;
        let replicas = (0..REPLICAS).map(|_| migrate(&[], database.url()));
        let reports = join_all(replicas).await;
        let mut applied = reports
            .iter()
            .map(|report| versions(report, "applied"))
            .filter(|applied| !applied.is_empty());
        assert_eq!(applied.next(), Some(known()));
        assert_eq!(applied.next(), None);
        for report in &reports {
            let both = [
                versions(report, "already_applied"),
                versions(report, "applied"),
            ];
            assert_eq!(both.concat(), known());
        }
        assert_eq!(written_down(&database).await, known());
    }
}

/// The same within one process, many times; also where statements would not see by themselves what
/// others have committed.
#[tokio::test(flavor = "multi_thread")]
async fn of_ten_workers_that_start_together_one_migrates_and_all_succeed() {
    for round in 0..20 {
        let database = TestDatabase::empty().await;
        if round % 2 == 1 {
            let name = database.name();
            let isolation = "default_transaction_isolation = 'repeatable read'";
            let statement = format!("ALTER DATABASE {name} SET {isolation}");
            database.execute(&statement).await;
        }
        let mut settings = database_settings(database.url());
        settings.migrate = true;
        settings.connect_timeout = LIMIT;
        let starting = (0..REPLICAS).map(|_| postgres::migrate_at_start(&settings));
        for started in join_all(starting).await {
            assert_eq!(started, Ok(()));
        }
        assert_eq!(written_down(&database).await, known());
    }
}

#[tokio::test]
async fn a_worker_leaves_the_schema_alone_unless_told_otherwise() {
    let database = TestDatabase::empty().await;
    let settings = database_settings(database.url());
    assert_eq!(postgres::migrate_at_start(&settings).await, Ok(()));
    assert_eq!(tables(&database).await, 0);
}

#[tokio::test]
async fn a_dry_run_changes_nothing() {
    let database = TestDatabase::empty().await;
    let report = migrate(&["--dry-run"], database.url()).await;
    assert_eq!(versions(&report, "pending"), known());
    assert_eq!(tables(&database).await, 0);
    let output = lanekeeper(&["migrate"], Some(database.url())).await;
    let text = String::from_utf8(output.stdout).unwrap();
    let title = format!("{} migrations applied", known().len());
    assert!(text.contains(&title), "{text}");
    assert!(text.contains("\n      1  directory"), "{text}");
    let again = migrate(&[], database.url()).await;
    assert_eq!(versions(&again, "already_applied"), known());
}

#[tokio::test]
async fn a_newer_schema_is_left_alone_and_worked_with() {
    let database = TestDatabase::create().await;
    database
        .execute(
            "INSERT INTO _sqlx_migrations VALUES (9999, 'of tomorrow', now(), true, '\\x00', 1)",
        )
        .await;
    let report = migrate(&[], database.url()).await;
    assert_eq!(versions(&report, "unknown"), [9_999]);
    assert!(versions(&report, "applied").is_empty());
    let check = lanekeeper(&["check"], Some(database.url())).await;
    let text = String::from_utf8(check.stdout).unwrap();
    assert!(text.contains("newer than this program"), "{text}");
}

#[tokio::test]
async fn a_changed_migration_is_refused_with_advice_and_nothing_is_done() {
    let database = TestDatabase::create().await;
    let last = known().pop().unwrap();
    let change = format!(
        "UPDATE _sqlx_migrations SET checksum = '\\x00' WHERE version = 2;
         DELETE FROM _sqlx_migrations WHERE version = {last}"
    );
    database.execute(&change).await;
    for arguments in [&["migrate"][..], &["migrate", "--dry-run"]] {
        let output = lanekeeper(arguments, Some(database.url())).await;
        assert_eq!(output.status.code(), Some(1));
        let text = errors(&output);
        let named = "migration 2 (opt outs and holds) was applied to this database with another";
        assert!(text.contains(named), "{text}");
        assert!(text.contains("use the release that applied it"), "{text}");
    }
    assert!(!written_down(&database).await.contains(&last));
    let check = lanekeeper(&["check"], Some(database.url())).await;
    let text = String::from_utf8(check.stdout).unwrap();
    assert!(text.contains("FAIL  database"), "{text}");
    assert!(text.contains("migration 2 (opt outs and holds)"), "{text}");
}

#[tokio::test]
async fn a_migration_that_fails_leaves_nothing_behind() {
    let database = TestDatabase::empty().await;
    database.execute("CREATE TABLE ledger (mine text)").await;
    let output = lanekeeper(&["migrate"], Some(database.url())).await;
    assert_eq!(output.status.code(), Some(1));
    let text = errors(&output);
    let expected = "(ledger) failed, and nothing was changed: relation \"ledger\" already exists";
    assert!(text.contains(expected), "{text}");
    assert_eq!(tables(&database).await, 1);
}

#[tokio::test]
async fn who_may_not_change_the_schema_is_told_so() {
    let server = PrivatePostgres::start().await;
    let reader = server.url_as("reader");
    let pool = server.pool();
    pool.execute("CREATE ROLE reader LOGIN").await.unwrap();
    let output = lanekeeper(&["migrate"], Some(&reader)).await;
    assert_eq!(output.status.code(), Some(1));
    let text = errors(&output);
    for part in [
        "may not change the schema",
        "permission denied",
        "owns the tables",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    migrate(&[], &server.url()).await;
    let blind = lanekeeper(&["migrate"], Some(&reader)).await;
    let text = errors(&blind);
    assert!(text.contains("this user may not do that"), "{text}");
    let right = "GRANT pg_read_all_data TO reader";
    pool.execute(right).await.unwrap();
    let report = migrate(&[], &reader).await;
    assert_eq!(versions(&report, "already_applied"), known());
}

#[tokio::test]
async fn a_database_that_cannot_be_used_is_named_without_its_secrets() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = nobody.local_addr().unwrap().port();
    drop(nobody);
    let url = format!("postgres://S3NTINEL:S3NTINEL@127.0.0.1:{port}/lanes?sslkey=S3NTINEL");
    let refused = lanekeeper(&["migrate"], Some(&url)).await;
    let expected = format!("postgres://127.0.0.1:{port}/lanes: ");
    let text = errors(&refused);
    assert!(text.contains(&expected), "{text}");
    assert!(text.contains("connection refused"), "{text}");
    assert!(!text.contains("S3NTINEL"), "{text}");
    assert_eq!(refused.status.code(), Some(1));

    let none = lanekeeper(&["migrate"], None).await;
    assert_eq!(none.status.code(), Some(2));
    let text = errors(&none);
    assert!(text.contains("LANEKEEPER__DATABASE__URL"), "{text}");

    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://{}/lanes", silent.local_addr().unwrap());
    let unanswered = lanekeeper(&["migrate"], Some(&url)).await;
    let text = errors(&unanswered);
    assert!(text.contains("no answer in time"), "{text}");
}
