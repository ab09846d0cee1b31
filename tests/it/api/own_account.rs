//! No account sees or changes what is another's, and no key does what it was not given.

use reqwest::Method;
use serde_json::{Value, json};

use super::resources::{Client, Services};
use crate::support::api::{Answer, answer, issue_key, issue_key_with};

const NUMBER: &str = "+447700900123";

/// One operation on a resource.
struct Operation {
    method: Method,
    /// As the document has it.
    template: &'static str,
    /// With one account's ids in it.
    path: String,
    body: Option<Value>,
    scope: &'static str,
}

fn operation(
    method: Method,
    template: &'static str,
    ids: &[&str],
    body: Option<Value>,
    scope: &'static str,
) -> Operation {
    let mut path = String::new();
    let mut ids = ids.iter();
    for part in template.split('/').skip(1) {
        let part = if part.starts_with('{') {
            ids.next().unwrap()
        } else {
            part
        };
        path = format!("{path}/{part}");
    }
    Operation {
        method,
        template,
        path,
        body,
        scope,
    }
}

/// Every operation on what an account has, by the ids of what `acme` has.
fn operations(message: &str) -> Vec<Operation> {
    let (get, post, put, delete) = (Method::GET, Method::POST, Method::PUT, Method::DELETE);
    let one = "/api/v1/messages/{channel_or_id}";
    let suppression = "/api/v1/suppressions/{recipient}";
    let cap = "/api/v1/frequency-caps/{name}";
    let opt_out = json!({"recipient": NUMBER});
    let reply = json!({"channel": "sms", "from": NUMBER, "body": "START"});
    let terms = json!({"limit": 7, "window_seconds": 60});
    let hold = json!({"kind": "campaign", "id": "spring", "action": "cancel"});
    vec![
        operation(get.clone(), "/api/v1/messages", &[], None, "read"),
        operation(get.clone(), one, &[message], None, "read"),
        operation(get.clone(), "/api/v1/suppressions", &[], None, "read"),
        operation(get.clone(), suppression, &[NUMBER], None, "read"),
        operation(get.clone(), "/api/v1/frequency-caps", &[], None, "read"),
        operation(get.clone(), cap, &["daily"], None, "read"),
        operation(get, "/api/v1/holds", &[], None, "read"),
        operation(post.clone(), "/api/v1/inbound", &[], Some(reply), "admin"),
        operation(delete.clone(), suppression, &[NUMBER], None, "admin"),
        operation(
            post.clone(),
            "/api/v1/suppressions",
            &[],
            Some(opt_out),
            "admin",
        ),
        operation(delete.clone(), cap, &["daily"], None, "admin"),
        operation(put, cap, &["daily"], Some(terms), "admin"),
        operation(
            delete,
            "/api/v1/holds/{kind}/{id}",
            &["campaign", "spring"],
            None,
            "admin",
        ),
        operation(post, "/api/v1/holds", &[], Some(hold), "admin"),
    ]
}

async fn carry_out(client: &Client<'_>, operation: &Operation) -> Answer {
    let Operation {
        method, path, body, ..
    } = operation;
    let request = client.api.request(method.clone(), path, client.key);
    let request = match body {
        Some(body) => request.json(body),
        None => request,
    };
    answer(request).await
}

/// What `acme` has, as it sees it.
async fn belongings(client: &Client<'_>, message: &str) -> Vec<Value> {
    let mut all = Vec::new();
    for operation in operations(message) {
        if operation.method == Method::GET {
            let answer = carry_out(client, &operation).await;
            assert_eq!(answer.status, 200, "{}", operation.path);
            all.push(answer.body["data"].clone());
        }
    }
    all
}

async fn furnish(client: &Client<'_>) -> String {
    let id = client
        .send_to(NUMBER, json!({"priority": "high"}))
        .await
        .message_id();
    client.await_status(&id, "dispatched").await;
    let opt_out = json!({"recipient": NUMBER, "source": "acme's"});
    assert_eq!(
        client.post("/api/v1/suppressions", &opt_out).await.status,
        201
    );
    let terms = json!({"limit": 3, "window_seconds": 60});
    assert_eq!(
        client
            .put("/api/v1/frequency-caps/daily", &terms)
            .await
            .status,
        201
    );
    let pause = json!({"kind": "campaign", "id": "spring", "action": "pause"});
    assert_eq!(client.post("/api/v1/holds", &pause).await.status, 201);
    id
}

#[tokio::test]
async fn no_operation_reaches_what_is_another_accounts() {
    let services = Services::start("api-own").await;
    let acme = services.client();
    let message = furnish(&acme).await;
    let before = belongings(&acme, &message).await;
    let theirs = issue_key(&services.database, "other").await;
    let other = Client {
        api: &services.api,
        key: &theirs,
        account: "other",
    };
    other.await_known().await;
    for operation in operations(&message) {
        let named = operation.template.contains('{') && operation.method != Method::PUT;
        let answer = carry_out(&other, &operation).await;
        let what = format!("{} {}", operation.method, operation.path);
        if named {
            // What it has made itself by an earlier operation of this table is its own.
            assert_eq!(answer.status, 404, "{what}: {answer:?}");
        } else if operation.method == Method::GET {
            assert_eq!(answer.body["data"], json!([]), "{what}");
        } else {
            assert!(answer.status.is_success(), "{what}: {answer:?}");
        }
        assert!(
            !answer.body.to_string().contains("acme"),
            "{what}: {answer:?}"
        );
    }
    assert_eq!(
        belongings(&acme, &message).await,
        before,
        "nothing of acme's has changed"
    );
    // A cursor leads through one's own list, whoever made it.
    let page = acme.get("/api/v1/suppressions?limit=1").await;
    assert_eq!(page.body["data"][0]["source"], "acme's");
    services.stop().await;
}

#[tokio::test]
async fn every_operation_of_the_document_is_in_the_table_and_needs_its_scope() {
    let services = Services::start("api-scopes").await;
    let message = furnish(&services.client()).await;
    let operations = operations(&message);
    let document = services
        .client()
        .api
        .request(Method::GET, "/openapi.json", "");
    let document: Value = document.send().await.unwrap().json().await.unwrap();
    let tags = ["suppressions", "frequency caps", "holds"];
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, described) in methods.as_object().unwrap() {
            let is_ours = described["tags"]
                .as_array()
                .is_some_and(|given| tags.iter().any(|tag| given.contains(&json!(tag))));
            let is_listed = operations.iter().any(|one| {
                one.template == path && one.method.as_str().eq_ignore_ascii_case(method)
            });
            assert!(is_listed || !is_ours, "{method} {path}");
        }
    }
    let database = &services.database;
    for scope in ["send", "read", "admin"] {
        let key = issue_key_with(database, "third", &[scope], "api").await;
        let client = Client {
            api: &services.api,
            key: &key,
            account: "third",
        };
        client.await_known().await;
        for operation in &operations {
            let answer = carry_out(&client, operation).await;
            let what = format!("{scope}: {} {}", operation.method, operation.path);
            if operation.scope == scope {
                assert_ne!(answer.status, 403, "{what}");
            } else {
                assert_eq!(
                    (answer.status.as_u16(), answer.code()),
                    (403, "FORBIDDEN"),
                    "{what}"
                );
            }
        }
        let preview = "/api/v1/compliance/quiet-hours/preview?channel=email";
        let status = client.get(preview).await.status;
        assert_eq!(status == 200, scope == "read", "{scope}");
    }
    services.stop().await;
}

#[tokio::test]
async fn each_change_is_one_line_in_the_log_without_the_recipient() {
    let services = Services::start("api-audit").await;
    let client = services.client();
    let message = furnish(&client).await;
    for operation in operations(&message) {
        carry_out(&client, &operation).await;
    }
    let log = services.api.process.log();
    let lines: Vec<_> = log
        .lines()
        .filter(|line| line.contains("changed by an API key"))
        .collect();
    let id = services.key.split('_').nth(1).unwrap();
    for action in [
        "suppression.add",
        "frequency_cap.put",
        "hold.pause",
        "inbound.opt_in",
        "frequency_cap.remove",
        "hold.resume",
        "hold.cancel",
    ] {
        let told = lines.iter().filter(|line| line.contains(action)).count();
        let expected = match action {
            "suppression.add" | "frequency_cap.put" => 2,
            _ => 1,
        };
        assert_eq!(told, expected, "{action}: {log}");
    }
    assert!(
        lines
            .iter()
            .all(|line| line.contains(id) && line.contains("acme")),
        "{log}"
    );
    let secret = services.key.rsplit('_').next().unwrap();
    assert!(
        !log.contains("7700900123") && !log.contains(secret),
        "{log}"
    );
    services.stop().await;
}
