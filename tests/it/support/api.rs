//! Real API servers, and clients of them.

use std::time::Duration;

use lanekeeper::accounts::keys::ApiKey;
use reqwest::header::HeaderMap;
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use sqlx::PgPool;

use super::postgres::TestDatabase;
use super::worker::{Worker, WorkerConfig, free_port};

/// It must be ready within this; a machine that compiles at the same time is slow.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// The key of `lanekeeper dev`.
pub const DEV_KEY: &str = "lk_devdevdevdev_notasecretnotasecretnotasecretnotasecret";

/// The recipient of most messages.
pub const RECIPIENT: &str = "+447700900123";

/// An API server, or `dev`, in a process of its own.
pub struct ApiServer {
    pub process: Worker,
    /// Address and port.
    pub address: String,
    client: reqwest::Client,
}

impl ApiServer {
    /// Starts `lanekeeper api` and waits until it is ready.
    pub async fn start(config: &WorkerConfig) -> Self {
        let mut server = Self::spawn("api", config);
        server.process.await_ready(READY_WITHIN).await;
        server
    }

    /// Starts `lanekeeper dev`, which needs nothing.
    pub async fn dev() -> Self {
        Self::dev_with(&WorkerConfig::new("unused")).await
    }

    /// The same with settings.
    pub async fn dev_with(config: &WorkerConfig) -> Self {
        let mut server = Self::spawn("dev", config);
        let address = server.address.clone();
        server.process.await_listening(&address, READY_WITHIN).await;
        server
    }

    /// Starts one without waiting for anything.
    pub fn spawn(command: &str, config: &WorkerConfig) -> Self {
        Self::spawn_at(command, &format!("127.0.0.1:{}", free_port()), config)
    }

    /// The same at this address and port.
    pub fn spawn_at(command: &str, address: &str, config: &WorkerConfig) -> Self {
        let config = config.clone().set("API__LISTEN", address);
        Self {
            process: Worker::spawn_as(command, &config),
            address: address.to_owned(),
            client: client(),
        }
    }

    /// The URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// A request, yet to be completed and sent.
    pub fn request(&self, method: Method, path: &str, key: &str) -> RequestBuilder {
        let request = self.client.request(method, self.url(path));
        request.header("X-API-Key", key)
    }

    /// Gets a path.
    pub async fn get(&self, path: &str, key: &str) -> Answer {
        answer(self.request(Method::GET, path, key)).await
    }

    /// Sends a message by SMS.
    pub async fn send(&self, key: &str, message: &Value) -> Answer {
        answer(self.sending(key, message)).await
    }

    /// A message by SMS, yet to be sent.
    pub fn sending(&self, key: &str, message: &Value) -> RequestBuilder {
        let request = self.request(Method::POST, "/api/v1/messages/sms", key);
        request.json(message)
    }
}

/// A message with a priority.
pub fn message(priority: &str) -> Value {
    json!({"to": RECIPIENT, "body": "hello", "priority": priority})
}

/// An HTTP answer, read whole.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Value,
}

impl Answer {
    /// The code of an error.
    pub fn code(&self) -> &str {
        self.body["error"]["code"].as_str().unwrap_or_default()
    }

    /// The id of a message that was accepted.
    pub fn message_id(&self) -> String {
        assert_eq!(self.status, 202, "{self:?}");
        self.body["data"]["message_id"].as_str().unwrap().to_owned()
    }

    /// A header's text; empty where there is none.
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap())
    }
}

/// Sends a request and reads the answer, which must be in the envelope.
pub async fn answer(request: RequestBuilder) -> Answer {
    let answer = request.send().await.unwrap();
    let (status, headers) = (answer.status(), answer.headers().clone());
    let text = answer.text().await.unwrap();
    let body: Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{status}: {error}: {text}"));
    assert!(body["meta"]["request_id"].is_string(), "{status}: {text}");
    Answer {
        status,
        headers,
        body,
    }
}

/// A client of its own, with connections of its own.
pub fn client() -> reqwest::Client {
    let client = reqwest::Client::builder()
        .no_proxy()
        .timeout(Duration::from_secs(30));
    client.build().unwrap()
}

/// Makes a key with all scopes for an account, as `lanekeeper key create` does.
pub async fn issue_key(database: &TestDatabase, account: &str) -> String {
    issue_key_at(database.pool(), account).await
}

/// The same in any database.
pub async fn issue_key_at(pool: &PgPool, account: &str) -> String {
    issue(pool, account, &["send", "read", "admin"], "api").await
}

/// The same with scopes and an origin.
pub async fn issue_key_with(
    database: &TestDatabase,
    account: &str,
    scopes: &[&str],
    origin: &str,
) -> String {
    issue(database.pool(), account, scopes, origin).await
}

async fn issue(pool: &PgPool, account: &str, scopes: &[&str], origin: &str) -> String {
    let key = ApiKey::generate().unwrap();
    let made = sqlx::query(
        "INSERT INTO api_keys (key_id, account_id, name, digest, scopes, origin)
         VALUES ($1, $2, 'test', $3, $4, $5)",
    );
    made.bind(key.id().as_str())
        .bind(account)
        .bind(key.digest().as_bytes().as_slice())
        .bind(scopes)
        .bind(origin)
        .execute(pool)
        .await
        .unwrap();
    key.expose()
}
