//! What would become of a message, without sending it.

use reqwest::Method;
use serde_json::{Value, json};

use super::resources::{Client, SOON, Services, on_both, wrong_field};
use crate::support::api::{Answer, answer, issue_key_with};
use crate::support::eventually;

const PATH: &str = "/api/v1/messages/sms?dry_run=true";
const NUMBER: &str = "+447700900123";

async fn dry(client: &Client<'_>, message: &Value) -> Value {
    let answer = client.post(PATH, message).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let view = answer.body["data"].clone();
    assert_eq!(view["dry_run"], true);
    assert_eq!(view["gates"].as_array().unwrap().len(), 10);
    view
}

/// What it says, and the status that sending is then really answered with.
async fn told_and_done(client: &Client<'_>, message: &Value) -> (String, Answer) {
    let view = dry(client, message).await;
    let sent = client.api.send(client.key, message).await;
    assert_eq!(
        view["would_answer"],
        sent.status.as_u16(),
        "{view} {sent:?}"
    );
    (view["would"].as_str().unwrap().to_owned(), sent)
}

#[tokio::test]
async fn it_says_what_sending_is_then_answered_with() {
    on_both("api-dry", async |client: Client<'_>| {
        let message = |more: Value| {
            let mut message = json!({"to": NUMBER, "body": "x", "priority": "low"});
            let fields = more.as_object().unwrap().clone();
            message.as_object_mut().unwrap().extend(fields);
            message
        };
        let hold = |id: &str, action: &str| json!({"kind": "campaign", "id": id, "action": action});
        client.post("/api/v1/holds", &hold("p", "pause")).await;
        client.post("/api/v1/holds", &hold("c", "cancel")).await;
        client
            .post(
                "/api/v1/suppressions",
                &json!({"recipient": "+447700900999"}),
            )
            .await;
        for (more, would) in [
            (json!({}), "send"),
            (json!({"campaign_id": "p"}), "wait"),
            (json!({"campaign_id": "c"}), "cancelled"),
            (json!({"to": "+447700900999"}), "refused"),
            (json!({"not_before": "2099-01-01T00:00:00Z"}), "wait"),
        ] {
            let (told, _) = told_and_done(&client, &message(more.clone())).await;
            assert_eq!(told, would, "{more}");
        }
        let view = dry(&client, &message(json!({}))).await;
        assert_eq!(
            (&view["traffic_lane"], &view["lane_rule"]),
            (&json!("marketing"), &json!("priority"))
        );
        let pause = json!({"kind": "account", "action": "pause"});
        client.post("/api/v1/holds", &pause).await;
        let (_, sent) = told_and_done(&client, &message(json!({}))).await;
        assert_eq!(sent.code(), "ACCOUNT_PAUSED");
        let wrong = client.post(PATH, &json!({"to": "12", "body": "x"})).await;
        assert_eq!(wrong_field(&wrong), "to");
        let typo = client
            .post("/api/v1/messages/sms?dryrun=true", &message(json!({})))
            .await;
        assert_eq!(typo.status, 422, "a misspelt dry run sends nothing");
    })
    .await;
}

#[tokio::test]
async fn nothing_is_sent_counted_or_written() {
    on_both("api-dry-nothing", async |client: Client<'_>| {
        let terms = json!({"limit": 1, "window_seconds": 600});
        client.put("/api/v1/frequency-caps/one", &terms).await;
        let message = json!({"to": NUMBER, "body": "x"});
        let seen = async || {
            let view = dry(&client, &message).await;
            let gates = view["gates"].as_array().unwrap();
            let caps = gates
                .iter()
                .find(|gate| gate["gate"] == "frequency_caps")
                .unwrap();
            caps["why"].as_str().unwrap().starts_with("one: 0 of 1")
        };
        eventually("the cap is known", SOON, seen).await;
        for _ in 0..20 {
            assert_eq!(dry(&client, &message).await["would"], "send");
        }
        assert!(client.all("/api/v1/messages").await.is_empty());
        let (told, sent) = told_and_done(&client, &message).await;
        assert_eq!((told.as_str(), sent.status.as_u16()), ("send", 202));
        assert_eq!(
            sent.header("x-ratelimit-remaining"),
            "99",
            "the first that is counted"
        );
        let (told, sent) = told_and_done(&client, &message).await;
        assert_eq!(
            (told.as_str(), sent.code()),
            ("refused", "FREQUENCY_CAP_EXCEEDED")
        );
    })
    .await;
}

#[tokio::test]
async fn it_is_for_keys_that_may_read() {
    let services = Services::start("api-dry-scope").await;
    let message = json!({"to": NUMBER, "body": "x"});
    for (scope, status) in [("read", 200), ("send", 403), ("admin", 403)] {
        let key = issue_key_with(&services.database, "acme", &[scope], "api").await;
        let client = Client {
            api: &services.api,
            key: &key,
            account: "acme",
        };
        client.await_known().await;
        let request = services
            .api
            .request(Method::POST, PATH, &key)
            .json(&message);
        assert_eq!(answer(request).await.status, status, "{scope}");
    }
    services.stop().await;
}
