//! Real Prometheus servers, and its tool for checking files.

use std::path::Path;
use std::process::{Command as StdCommand, Stdio};
use std::time::Duration;

use serde_json::Value;
use tokio::process::{Child, Command};

use super::worker::{free_port, ops_client};
use super::{busy, eventually};

/// How long a server may take to start.
const START_LIMIT: Duration = Duration::from_secs(30);

/// A server on a free port, killed when dropped.
pub struct Prometheus {
    address: String,
    client: reqwest::Client,
    _child: Child,
}

impl Prometheus {
    /// Starts a server with this configuration file, its data beside it, and waits until it answers.
    pub async fn start(configuration: &Path) -> Self {
        let _busy = busy().await;
        let address = format!("127.0.0.1:{}", free_port());
        let data = configuration.with_file_name("data");
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", configuration.display()))
            .arg(format!("--storage.tsdb.path={}", data.display()))
            .arg(format!("--web.listen-address={address}"))
            .arg("--log.level=error")
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("prometheus is installed: scripts/services.sh packages test");
        let server = Self {
            address,
            client: ops_client(),
            _child: child,
        };
        let ready = async || server.try_get("/-/ready", &[]).await.is_some();
        eventually("Prometheus is ready", START_LIMIT, ready).await;
        server
    }

    /// The values that an expression gives now, one for each series.
    ///
    /// # Panics
    /// When the expression is wrong.
    pub async fn query(&self, expression: &str) -> Vec<f64> {
        let query = [("query", expression)];
        let answer = self.get("/api/v1/query", &query).await;
        let result = answer["data"]["result"].as_array();
        let result = result.unwrap_or_else(|| panic!("{expression}: {answer}"));
        let values = result
            .iter()
            .map(|series| series["value"][1].as_str().unwrap());
        values.map(|value| value.parse().unwrap()).collect()
    }

    /// Every alerting rule, as the server has read it.
    pub async fn alerts(&self) -> Vec<Alert> {
        let answer = self.get("/api/v1/rules", &[("type", "alert")]).await;
        let groups = answer["data"]["groups"].as_array().unwrap().iter();
        let rules = groups.flat_map(|group| group["rules"].as_array().unwrap());
        rules.map(Alert::of).collect()
    }

    async fn get(&self, path: &str, query: &[(&str, &str)]) -> Value {
        let text = self.try_get(path, query).await;
        let text = text.unwrap_or_else(|| panic!("no answer to {path} {query:?}"));
        let answer: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(answer["status"], "success", "{query:?}: {answer}");
        answer
    }

    /// What it answers, unless it does not, or says that it is not ready.
    async fn try_get(&self, path: &str, query: &[(&str, &str)]) -> Option<String> {
        let address = format!("http://{}{path}", self.address);
        let url = url::Url::parse_with_params(&address, query).unwrap();
        let answer = self.client.get(url).send().await.ok()?;
        let ready = answer.status() != reqwest::StatusCode::SERVICE_UNAVAILABLE;
        if ready {
            answer.text().await.ok()
        } else {
            None
        }
    }
}

/// One alerting rule.
#[derive(Debug)]
pub struct Alert {
    pub name: String,
    pub expression: String,
    /// `inactive`, `pending` or `firing`.
    pub state: String,
    pub severity: String,
    pub annotations: Value,
}

impl Alert {
    fn of(rule: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Self {
            name: text(&rule["name"]),
            expression: text(&rule["query"]),
            state: text(&rule["state"]),
            severity: text(&rule["labels"]["severity"]),
            annotations: rule["annotations"].clone(),
        }
    }
}

/// Runs `promtool` in `directory`, which must succeed.
pub fn promtool(directory: &Path, arguments: &[&str]) {
    let mut command = StdCommand::new("promtool");
    let output = command.current_dir(directory).args(arguments).output();
    let output = output.expect("promtool is installed: scripts/services.sh packages test");
    assert!(
        output.status.success(),
        "promtool {arguments:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
