//! The API is what its `OpenAPI` document says. schemathesis, a Python program, makes requests up from
//! the document, sound ones and others, and holds each answer against it; `contract/rules.py` adds what
//! no such document can say.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::timeout;

use crate::support::api::ApiServer;
use crate::support::busy;
use crate::support::programs::installed;
use crate::support::worker::WorkerConfig;

/// Requests that are made up for each operation, beside those for each bound and type in its schema.
const EXAMPLES: &str = "60";

const LIMIT: Duration = Duration::from_secs(300);

#[tokio::test]
async fn no_answer_contradicts_the_document() {
    let _busy = busy().await;
    let unlimited = WorkerConfig::new("unused").set("API__REQUESTS_PER_SECOND", 0);
    let server = ApiServer::dev_with(&unlimited).await;
    let library = installed("schemathesis", "scripts/schemathesis.sh");
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/api/contract");
    // It leaves files behind.
    let directory = TempDir::new().unwrap();
    let run = Command::new("python3")
        .args(["-m", "schemathesis.cli", "--no-color", "--config-file"])
        .arg(rules.join("schemathesis.toml"))
        .args(["run", &server.url("/openapi.json")])
        .args(["--generation-deterministic", "--max-examples", EXAMPLES])
        .current_dir(directory.path())
        .env(
            "PYTHONPATH",
            std::env::join_paths([&library, &rules]).unwrap(),
        )
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("SCHEMATHESIS_HOOKS", "rules")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let run = timeout(LIMIT, run).await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&run.stdout) + String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{said}");
    // Nothing was tried: a document without routes has no contradictions.
    assert!(said.contains(" passed"), "{said}");
    server.process.stop().await;
}
