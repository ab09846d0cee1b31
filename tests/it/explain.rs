//! `lanekeeper explain` as an operator runs it.

mod dry_run;
mod told;

use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;
use tokio::time::timeout;

use crate::support::postgres::TestDatabase;

/// How long the command may take.
const LIMIT: Duration = Duration::from_secs(60);

async fn explain(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let command = Command::new(env!("CARGO_BIN_EXE_lanekeeper"))
        .arg("explain")
        .args(arguments)
        .env_clear()
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    timeout(LIMIT, command).await.expect("it ends").unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// What it prints as JSON, with its exit code.
async fn as_json(arguments: &[&str], environment: &[(&str, &str)]) -> (Value, i32) {
    let arguments = [arguments, &["--json"]].concat();
    let output = explain(&arguments, environment).await;
    let read = serde_json::from_slice(&output.stdout);
    let json = read.unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    (json, output.status.code().unwrap())
}

fn database_of(database: &TestDatabase) -> [(&str, &str); 1] {
    [("LANEKEEPER__DATABASE__URL", database.url())]
}

/// The gates' answers as `gate answer`.
fn gates(of: &Value) -> Vec<String> {
    let steps = of["gates"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    steps
        .map(|step| format!("{} {}", text(&step["gate"]), text(&step["answer"])))
        .collect()
}
