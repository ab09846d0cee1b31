//! An API server to upload to, with queues and a database of its own.

use std::collections::HashMap;
use std::time::Duration;

use lapin::options::BasicGetOptions;
use reqwest::{Body, Method, RequestBuilder};
use serde::Deserialize;
use serde_json::Value;

use crate::support::api::{Answer, ApiServer, answer, issue_key, issue_key_with};
use crate::support::eventually;
use crate::support::postgres::TestDatabase;
use crate::support::queues::Queues;
use crate::support::rabbit::connection;
use crate::support::worker::{WorkerConfig, declare};
use crate::support::{amqp_url, unique_prefix};

/// The account of most batches.
pub const ACCOUNT: &str = "acme";

pub const CSV: &str = "text/csv";
pub const LINES: &str = "application/x-ndjson";
pub const JSON: &str = "application/json";

/// An upload may take this long; a machine that compiles at the same time is slow.
pub const LIMIT: Duration = Duration::from_secs(300);

/// What is looked at of a job; one is nested deeper than a whole value may be.
#[derive(Deserialize)]
struct Named {
    id: String,
}

/// A server that is uploaded to.
pub struct Desk {
    pub api: ApiServer,
    pub database: TestDatabase,
    pub config: WorkerConfig,
    pub key: String,
    pub amqp: String,
    pub prefix: String,
}

impl Desk {
    /// On the shared services.
    pub async fn new(name: &str) -> Self {
        Self::with(name, amqp_url(), |config| config).await
    }

    /// On this broker, with settings.
    pub async fn with(
        name: &str,
        amqp: String,
        set: impl FnOnce(WorkerConfig) -> WorkerConfig,
    ) -> Self {
        let database = TestDatabase::create().await;
        let prefix = unique_prefix(name);
        let config = WorkerConfig::new(&prefix)
            .set("AMQP__URL", &amqp)
            .set("DATABASE__URL", database.url());
        let config = set(config);
        declare(&config).await;
        let key = issue_key(&database, ACCOUNT).await;
        Self {
            api: ApiServer::start(&config).await,
            key,
            database,
            config,
            amqp,
            prefix,
        }
    }

    /// Another key, which the server knows already.
    pub async fn key_of(&self, account: &str, scopes: &[&str], origin: &str) -> String {
        let key = issue_key_with(&self.database, account, scopes, origin).await;
        let known = async || {
            let found = self.api.get("/api/v1/batches/none", &key).await;
            found.status != 401
        };
        eventually("the key is known", Duration::from_secs(20), known).await;
        key
    }

    /// Kills the server on the spot and starts another.
    pub async fn kill_and_start(&mut self) {
        let next = ApiServer::start(&self.config).await;
        let killed = std::mem::replace(&mut self.api, next);
        killed.process.kill().await;
    }

    /// Uploads by SMS, unless the parameters say otherwise.
    pub async fn upload(&self, parameters: &str, kind: &str, body: impl Into<Body>) -> Answer {
        answer(self.uploading(parameters, kind, body)).await
    }

    /// The same, yet to be sent.
    pub fn uploading(&self, parameters: &str, kind: &str, body: impl Into<Body>) -> RequestBuilder {
        uploading(&self.api, &self.key, parameters, kind, body)
    }

    /// What is known of a batch.
    pub async fn batch(&self, id: &str) -> Value {
        let path = format!("/api/v1/batches/{id}");
        let found = self.api.get(&path, &self.key).await;
        assert_eq!(found.status, 200, "{found:?}");
        found.body["data"].clone()
    }

    /// Up to which row a batch is settled; 0 before anything is known.
    pub async fn complete_to(&self, id: &str) -> u64 {
        let select = "SELECT confirmed_line FROM batches WHERE batch_id = $1";
        let select = sqlx::query_scalar::<_, i64>(select).bind(id);
        let line = select.fetch_optional(self.database.pool()).await.unwrap();
        line.unwrap_or(0).unsigned_abs()
    }

    /// Waits until a batch is settled up to a row.
    pub async fn await_row(&self, id: &str, row: u64) {
        let what = format!("{id} is settled up to row {row}");
        eventually(&what, LIMIT, async || self.complete_to(id).await >= row).await;
    }

    /// All rejected rows, page by page, with their fields.
    pub async fn rejections(&self, id: &str, limit: u32) -> Vec<(u64, String)> {
        let mut rows = Vec::new();
        let mut cursor = String::new();
        loop {
            let path = format!("/api/v1/batches/{id}/rejections?limit={limit}{cursor}");
            let page = self.api.get(&path, &self.key).await;
            assert_eq!(page.status, 200, "{page:?}");
            rows.extend(rows_of(&page.body["data"]));
            match page.body["meta"]["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return rows,
            }
        }
    }

    /// How many messages are in a lane's queue.
    pub async fn queued(&self, lane: &str) -> usize {
        self.queues().await.ready(lane).await
    }

    /// The jobs in a lane's queue, taken out of it.
    pub async fn take_jobs(&self, lane: &str) -> Vec<Value> {
        let messages = self.take_messages(lane).await;
        let jobs = messages
            .iter()
            .map(|message| serde_json::from_slice(message));
        jobs.collect::<Result<_, _>>().unwrap()
    }

    async fn take_messages(&self, lane: &str) -> Vec<Vec<u8>> {
        let connection = connection(&self.amqp).await;
        let channel = connection.create_channel().await.unwrap();
        let queue = format!("{}.{lane}", self.prefix);
        let get = BasicGetOptions { no_ack: true };
        let mut messages = Vec::new();
        while let Some(message) = channel.basic_get(queue.as_str().into(), get).await.unwrap() {
            assert_eq!(message.properties.delivery_mode(), &Some(2));
            messages.push(message.delivery.data);
        }
        messages
    }

    /// How often each id is in a lane's queue.
    pub async fn take_ids(&self, lane: &str) -> HashMap<String, usize> {
        let mut ids = HashMap::new();
        for message in self.take_messages(lane).await {
            let job: Named = serde_json::from_slice(&message).unwrap();
            *ids.entry(job.id).or_default() += 1;
        }
        ids
    }

    pub async fn queues(&self) -> Queues {
        Queues::connect(&self.amqp, &self.prefix).await
    }

    /// Stops the server, and removes what it left in the broker.
    pub async fn end(self) {
        self.api.process.stop().await;
        Queues::connect(&self.amqp, &self.prefix)
            .await
            .remove()
            .await;
    }
}

/// An upload, yet to be sent; by SMS unless the parameters say otherwise.
pub fn uploading(
    api: &ApiServer,
    key: &str,
    parameters: &str,
    kind: &str,
    body: impl Into<Body>,
) -> RequestBuilder {
    let channel = if parameters.contains("channel=") {
        ""
    } else {
        "channel=sms&"
    };
    let path = format!("/api/v1/batches?{channel}{parameters}");
    let request = api.request(Method::POST, &path, key);
    request
        .timeout(LIMIT)
        .header("Content-Type", kind)
        .body(body)
}

/// Numbers and fields of rejected rows.
pub fn rows_of(rejections: &Value) -> Vec<(u64, String)> {
    let rows = rejections.as_array().unwrap().iter();
    rows.map(|row| {
        assert!(row["reason"].is_string(), "{row}");
        let field = row["field"].as_str().unwrap().to_owned();
        (row["row"].as_u64().unwrap(), field)
    })
    .collect()
}

/// The figures of a batch or of an upload's answer: rows, accepted, duplicates, rejected.
pub fn figures(data: &Value) -> [u64; 4] {
    ["rows", "accepted", "duplicates", "rejected"].map(|name| data[name].as_u64().unwrap())
}
