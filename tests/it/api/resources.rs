//! What the tests of the API's resources have in common: one client, of real services or of `dev`.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::api::{Answer, ApiServer, DEV_KEY, answer, issue_key};
use crate::support::eventually;
use crate::support::postgres::TestDatabase;
use crate::support::scene::{ACCOUNT, Scene};
use crate::support::worker::Worker;

pub const SOON: Duration = Duration::from_secs(20);

/// A server and a key for it.
pub struct Client<'a> {
    pub api: &'a ApiServer,
    pub key: &'a str,
    /// The account of the key.
    pub account: &'a str,
}

impl Client<'_> {
    pub async fn ask(&self, method: Method, path: &str) -> Answer {
        answer(self.api.request(method, path, self.key)).await
    }

    /// Waits until the server has heard of a key that was made while it runs.
    pub async fn await_known(&self) {
        let known = async || self.get("/api/v1/holds").await.status != 401;
        eventually("the key is known", SOON, known).await;
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.ask(Method::GET, path).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.ask(Method::DELETE, path).await
    }

    pub async fn give(&self, method: Method, path: &str, body: &Value) -> Answer {
        answer(self.api.request(method, path, self.key).json(body)).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.give(Method::POST, path, body).await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        self.give(Method::PUT, path, body).await
    }

    /// Sends by SMS to that number, with further fields.
    pub async fn send_to(&self, to: &str, more: Value) -> Answer {
        let mut message = json!({"to": to, "body": "hello"});
        let fields = more.as_object().unwrap().clone();
        message.as_object_mut().unwrap().extend(fields);
        self.api.send(self.key, &message).await
    }

    /// Waits until a message has that status, and all that will be known of it, and gives what is
    /// shown: a claim says that it was sent shortly before the ledger does.
    pub async fn await_status(&self, id: &str, status: &str) -> Value {
        let path = format!("/api/v1/messages/{id}");
        let is = async || {
            let shown = self.get(&path).await;
            let view = &shown.body["data"];
            view["status"] == status && view["traffic_lane"].is_string()
        };
        eventually(&format!("{id} is {status}"), SOON, is).await;
        self.get(&path).await.body["data"].take()
    }

    /// Every entry of a list, page by page.
    pub async fn all(&self, path: &str) -> Vec<Value> {
        let mut all = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = self.get(&format!("{path}{cursor}")).await;
            assert_eq!(page.status, 200, "{page:?}");
            let entries = page.body["data"].as_array().unwrap();
            all.extend(entries.iter().cloned());
            assert!(page.body["meta"].get("next_cursor").is_some());
            let Some(next) = page.body["meta"]["next_cursor"].as_str() else {
                return all;
            };
            let separator = if path.contains('?') { '&' } else { '?' };
            cursor = format!("{separator}cursor={next}");
        }
    }
}

/// Real services with one worker, and one account's key.
pub struct Services {
    pub scene: Scene,
    pub database: TestDatabase,
    pub api: ApiServer,
    pub worker: Worker,
    pub key: String,
}

impl Services {
    pub async fn start(name: &str) -> Self {
        let (scene, database) = Scene::with_database(name).await;
        let key = issue_key(&database, ACCOUNT).await;
        let worker = Worker::start(&scene.config).await;
        let api = ApiServer::start(&scene.config).await;
        Self {
            scene,
            database,
            api,
            worker,
            key,
        }
    }

    pub fn client(&self) -> Client<'_> {
        Client {
            api: &self.api,
            key: &self.key,
            account: ACCOUNT,
        }
    }

    pub async fn stop(self) {
        self.api.process.stop().await;
        self.worker.stop().await;
        self.scene.end().await;
    }
}

/// The same on both: what holds on real services holds on `dev`.
pub async fn on_both(name: &str, check: impl AsyncFn(Client<'_>)) {
    let services = Services::start(name).await;
    check(services.client()).await;
    services.stop().await;
    on_dev(check).await;
}

/// On `dev` alone.
pub async fn on_dev(check: impl AsyncFn(Client<'_>)) {
    let dev = ApiServer::dev().await;
    let client = Client {
        api: &dev,
        key: DEV_KEY,
        account: "demo",
    };
    check(client).await;
    dev.process.stop().await;
}

/// What a 422 says is wrong.
pub fn wrong_field(answer: &Answer) -> &str {
    assert_eq!(answer.status, 422, "{answer:?}");
    answer.body["error"]["details"]["field"].as_str().unwrap()
}
