//! Pause, resume and cancel over HTTP.

use serde_json::{Value, json};

use super::resources::{Client, SOON, Services, on_both, wrong_field};
use crate::support::eventually;

const PATH: &str = "/api/v1/holds";
const NUMBER: &str = "+447700900123";

fn hold(kind: &str, id: &str, action: &str) -> Value {
    json!({"kind": kind, "id": id, "action": action})
}

#[tokio::test]
async fn what_is_paused_waits_until_it_is_resumed() {
    on_both("api-pause", async |client: Client<'_>| {
        let mut pause = hold("campaign", "spring sale", "pause");
        pause["reason"] = json!("wrong prices");
        let made = client.post(PATH, &pause).await;
        assert_eq!(made.status, 201);
        let data = &made.body["data"];
        assert_eq!(
            (&data["state"], &data["by"]),
            (&json!("paused"), &json!("key"))
        );
        assert_eq!(data["reason"], "wrong prices");
        let again = client
            .post(PATH, &hold("campaign", "spring sale", "pause"))
            .await;
        assert_eq!((again.status.as_u16(), &again.body["data"]), (200, data));

        let of_it = json!({"campaign_id": "spring sale", "priority": "high"});
        let id = client.send_to(NUMBER, of_it).await.message_id();
        let waits = client.await_status(&id, "waiting").await;
        assert_eq!(waits["reason"], "paused");
        assert_eq!(waits["waiting"]["holds"][0], "campaign spring sale: paused");
        let other = client
            .send_to(NUMBER, json!({"campaign_id": "spring"}))
            .await;
        client.await_status(&other.message_id(), "dispatched").await;

        let resumed = client
            .delete(&format!("{PATH}/campaign/spring%20sale"))
            .await;
        assert_eq!(resumed.body["data"]["before"], "paused");
        client.await_status(&id, "dispatched").await;
        let gone = client
            .delete(&format!("{PATH}/campaign/spring%20sale"))
            .await;
        assert_eq!(gone.status, 404);
    })
    .await;
}

#[tokio::test]
async fn a_paused_account_accepts_nothing() {
    on_both("api-pause-account", async |client: Client<'_>| {
        let pause = json!({"kind": "account", "action": "pause"});
        let made = client.post(PATH, &pause).await;
        assert_eq!(made.body["data"]["id"], client.account);
        let refused = client.send_to(NUMBER, json!({})).await;
        assert_eq!(
            (refused.status.as_u16(), refused.code()),
            (402, "ACCOUNT_PAUSED")
        );
        let path = format!("{PATH}/account/{}", client.account);
        assert_eq!(client.delete(&path).await.status, 200);
        assert_eq!(client.send_to(NUMBER, json!({})).await.status, 202);
    })
    .await;
}

#[tokio::test]
async fn what_is_cancelled_stays_so_unless_that_is_asked_for() {
    on_both("api-cancel", async |client: Client<'_>| {
        client.post(PATH, &hold("batch", "b-1", "pause")).await;
        let cancelled = client.post(PATH, &hold("batch", "b-1", "cancel")).await;
        assert_eq!(
            (cancelled.status.as_u16(), &cancelled.body["data"]["state"]),
            (200, &json!("cancelled"))
        );
        client.post(PATH, &hold("campaign", "c", "cancel")).await;
        let refused = client.send_to(NUMBER, json!({"campaign_id": "c"})).await;
        assert_eq!(
            (refused.status.as_u16(), refused.code()),
            (403, "SENDING_CANCELLED")
        );
        let pause = client.post(PATH, &hold("campaign", "c", "pause")).await;
        assert_eq!((pause.status.as_u16(), pause.code()), (409, "CONFLICT"));
        let path = format!("{PATH}/campaign/c");
        assert_eq!(client.delete(&path).await.status, 409);
        assert_eq!(
            client
                .delete(&format!("{path}?cancelled=false"))
                .await
                .status,
            409
        );
        let lifted = client.delete(&format!("{path}?cancelled=true")).await;
        assert_eq!(lifted.body["data"]["before"], "cancelled");
        assert_eq!(
            client
                .send_to(NUMBER, json!({"campaign_id": "c"}))
                .await
                .status,
            202
        );
        client.post(PATH, &hold("journey", "j", "pause")).await;
        let all = client.all(&format!("{PATH}?limit=1")).await;
        let kinds: Vec<_> = all
            .iter()
            .map(|one| one["kind"].as_str().unwrap())
            .collect();
        assert_eq!(kinds, ["batch", "journey"]);
    })
    .await;
}

#[tokio::test]
async fn what_cannot_be_held_is_named() {
    on_both("api-hold-wrong", async |client: Client<'_>| {
        for (body, field) in [
            (json!({"kind": "campaign", "action": "pause"}), "id"),
            (hold("campaign", "", "pause"), "id"),
            (hold("campaign", "a\u{0}", "pause"), "id"),
            (hold("campaign", &"x".repeat(1025), "pause"), "id"),
            (hold("fleet", "x", "pause"), "kind"),
            (hold("campaign", "x", "stop"), "action"),
            (hold("account", "somebody-else", "pause"), "id"),
            (
                json!({"kind": "batch", "id": "x", "action": "pause", "reason": ""}),
                "reason",
            ),
        ] {
            assert_eq!(
                wrong_field(&client.post(PATH, &body).await),
                field,
                "{body}"
            );
        }
        for (path, status) in [
            ("fleet/x", 422),
            ("campaign/x", 404),
            ("account/somebody-else", 422),
            ("campaign/x?cancelled=perhaps", 422),
        ] {
            let answer = client.delete(&format!("{PATH}/{path}")).await;
            assert_eq!(answer.status, status, "{path}");
        }
        assert!(client.all(PATH).await.is_empty());
    })
    .await;
}

/// The key's request finds no hold, and the operator's is committed before it writes its own.
async fn operator_and_key_at_once(services: &Services) {
    let mut operator = services.database.pool().begin().await.unwrap();
    let paused = "INSERT INTO holds (account_id, kind, target, state, reason) VALUES
        ('acme', 'campaign', 'race', 'paused', 'invoice')";
    sqlx::query(paused).execute(&mut *operator).await.unwrap();
    let mine = json!({"kind": "campaign", "id": "race", "action": "pause", "reason": "mine"});
    let client = services.client();
    let put = client.post(PATH, &mine);
    let commit = async {
        let waits = async || {
            let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                AND wait_event_type = 'Lock' AND query LIKE '%INTO holds%'";
            let waiting = sqlx::query_scalar::<_, i64>(waiting);
            waiting.fetch_one(services.database.pool()).await.unwrap() == 1
        };
        eventually("the key's request waits", SOON, waits).await;
        operator.commit().await.unwrap();
    };
    let (answer, ()) = tokio::join!(put, commit);
    let data = &answer.body["data"];
    assert_eq!(
        (&data["by"], &data["reason"]),
        (&json!("operator"), &json!("invoice"))
    );
}

/// A pause for an unpaid invoice must not be lifted by whoever has not paid.
#[tokio::test]
async fn what_an_operator_holds_no_key_lifts() {
    let services = Services::start("api-hold-operator").await;
    let client = services.client();
    let paused = "INSERT INTO holds (account_id, kind, target, state, reason) VALUES
        ('acme', 'account', 'acme', 'paused', 'invoice'), ('acme', 'campaign', 'c', 'paused', NULL)";
    services.database.execute(paused).await;
    let account = client.delete(&format!("{PATH}/account/acme")).await;
    assert_eq!(
        (account.status.as_u16(), account.code()),
        (403, "FORBIDDEN")
    );
    // To make it one's own first is no way around it.
    let mine = json!({"kind": "account", "action": "pause", "reason": "mine"});
    let data = client.post(PATH, &mine).await.body["data"].take();
    assert_eq!(
        (&data["by"], &data["reason"]),
        (&json!("operator"), &json!("invoice"))
    );
    // Nor is an operator's pause a key's to make graver: it would stand there as the operator's deed.
    let graver = client.post(PATH, &hold("campaign", "c", "cancel")).await;
    assert_eq!((graver.status.as_u16(), graver.code()), (403, "FORBIDDEN"));
    let lift = client
        .delete(&format!("{PATH}/campaign/c?cancelled=true"))
        .await;
    assert_eq!(lift.status, 403);
    let account = client.delete(&format!("{PATH}/account/acme")).await;
    assert_eq!(account.status, 403);
    operator_and_key_at_once(&services).await;
    let refused = async || client.send_to(NUMBER, json!({})).await.code() == "ACCOUNT_PAUSED";
    eventually("it stays paused", SOON, refused).await;
    services.stop().await;
}
