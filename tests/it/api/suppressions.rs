//! Opt-outs over HTTP, and replies.

use std::time::Duration;

use serde_json::{Value, json};

use super::resources::{Client, Services, on_both, wrong_field};
use crate::support::api::{ApiServer, DEV_KEY, issue_key};
use crate::support::records::Records;
use crate::support::scene::{ACCOUNT, Scene};
use crate::support::worker::{Worker, WorkerConfig};

const PATH: &str = "/api/v1/suppressions";
const INBOUND: &str = "/api/v1/inbound";

async fn code_of_sending(client: &Client<'_>, to: &str) -> String {
    let answer = client.send_to(to, json!({"priority": "high"})).await;
    answer.code().to_owned()
}

#[tokio::test]
async fn an_opt_out_holds_until_it_is_removed_however_it_is_spelt() {
    on_both("api-opt-out", async |client: Client<'_>| {
        let new = json!({"recipient": " +44 (7700) 900-123 ", "source": "call centre"});
        let made = client.post(PATH, &new).await;
        assert_eq!(made.status, 201);
        let data = &made.body["data"];
        assert_eq!(
            (&data["recipient"], &data["channel"]),
            (&json!("+447700900123"), &json!("all"))
        );
        assert_eq!(
            code_of_sending(&client, "+447700900123").await,
            "RECIPIENT_OPTED_OUT"
        );

        let again = client
            .post(
                PATH,
                &json!({"recipient": "+447700900123", "source": "else"}),
            )
            .await;
        assert_eq!(again.status, 200);
        assert_eq!(again.body["data"], *data, "it stays as it is");
        let sms = json!({"recipient": "+447700900123", "channel": "sms"});
        assert_eq!(client.post(PATH, &sms).await.status, 201);

        for spelling in ["+447700900123", "%2B447700900123", "+44%207700%20900123"] {
            let shown = client.get(&format!("{PATH}/{spelling}")).await;
            assert_eq!(
                shown.body["data"].as_array().unwrap().len(),
                2,
                "{spelling}"
            );
            let one = client.get(&format!("{PATH}/{spelling}?channel=sms")).await;
            assert_eq!(one.body["data"].as_array().unwrap().len(), 1);
            let none = client.get(&format!("{PATH}/{spelling}?channel=rcs")).await;
            assert_eq!(none.status, 404);
        }
        let path = format!("{PATH}/%2B447700900123");
        let removed = client.delete(&format!("{path}?channel=all")).await;
        assert_eq!(removed.body["data"]["removed"], 1);
        assert_eq!(
            code_of_sending(&client, "+447700900123").await,
            "RECIPIENT_OPTED_OUT"
        );
        assert_eq!(client.delete(&path).await.body["data"]["removed"], 1);
        assert_eq!(client.delete(&path).await.status, 404);
        assert_eq!(client.get(&path).await.status, 404);
        assert_eq!(code_of_sending(&client, "+447700900123").await, "");
    })
    .await;
}

/// However many others there are, a page looks at few of them.
#[tokio::test]
async fn those_of_one_channel_are_found_among_many_others() {
    let services = Services::start("api-opt-outs-many").await;
    let client = services.client();
    let many = "INSERT INTO suppressions (account_id, recipient, scope)
        SELECT 'acme', '+4479' || lpad(n::text, 8, '0'), CASE n WHEN 1 THEN 'rcs' WHEN 4100 THEN 'rcs'
            ELSE 'all' END FROM generate_series(0, 4500) AS n";
    services.database.execute(many).await;
    let first = client.get(&format!("{PATH}?channel=rcs")).await;
    assert_eq!(first.body["data"].as_array().unwrap().len(), 1);
    assert!(first.body["meta"]["next_cursor"].is_string());
    let all = client.all(&format!("{PATH}?channel=rcs&limit=1")).await;
    let found: Vec<_> = all.iter().map(|one| &one["recipient"]).collect();
    assert_eq!(found, ["+447900000001", "+447900004100"]);
    assert!(
        client
            .all(&format!("{PATH}?channel=email"))
            .await
            .is_empty()
    );
    services.stop().await;
}

/// F5-11: an opt-out of one number was one of all numbers that it is part of.
#[tokio::test]
async fn a_number_that_another_contains_is_another() {
    on_both("api-opt-out-part", async |client: Client<'_>| {
        let (short, long) = ("+49301234567", "+493012345678");
        client.post(PATH, &json!({"recipient": short})).await;
        assert_eq!(code_of_sending(&client, short).await, "RECIPIENT_OPTED_OUT");
        assert_eq!(code_of_sending(&client, long).await, "");
    })
    .await;
}

#[tokio::test]
async fn addresses_and_ids_have_one_form_too() {
    on_both("api-opt-out-ids", async |client: Client<'_>| {
        for (new, recipient, channel) in [
            (
                json!({"recipient": " Ann.Lee@Exämple.ORG "}),
                "ann.lee@xn--exmple-cua.org",
                "email",
            ),
            (
                json!({"recipient": "a/b?c#d%e", "channel": "telegram"}),
                "a/b?c#d%e",
                "telegram",
            ),
            (
                json!({"recipient": "A@B", "channel": "push"}),
                "A@B",
                "push",
            ),
        ] {
            let made = client.post(PATH, &new).await;
            let data = &made.body["data"];
            assert_eq!(
                (&data["recipient"], &data["channel"]),
                (&json!(recipient), &json!(channel))
            );
            let bytes = recipient.bytes();
            let encoded = bytes
                .map(|byte| format!("%{byte:02X}"))
                .collect::<Vec<_>>()
                .concat();
            let path = format!("{PATH}/{encoded}?channel={channel}");
            assert_eq!(
                client.get(&path).await.body["data"][0]["recipient"],
                recipient
            );
        }
        assert_eq!(client.all(&format!("{PATH}?limit=1")).await.len(), 3);
        assert_eq!(client.all(&format!("{PATH}?channel=push")).await.len(), 1);
        assert!(client.all(&format!("{PATH}?channel=sms")).await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn what_no_message_could_have_as_its_recipient_is_refused_and_not_repeated() {
    on_both("api-opt-out-wrong", async |client: Client<'_>| {
        for (body, field) in [
            (json!({}), "recipient"),
            (json!({"recipient": 7}), "recipient"),
            (json!({"recipient": ""}), "recipient"),
            (json!({"recipient": "S3NTINEL"}), "recipient"),
            (json!({"recipient": "07700 900123 S3NTINEL"}), "recipient"),
            (json!({"recipient": "S3NTINEL@a@b"}), "recipient"),
            (
                json!({"recipient": "S3NTINEL\u{0}", "channel": "push"}),
                "recipient",
            ),
            (
                json!({"recipient": "x".repeat(2000), "channel": "push"}),
                "recipient",
            ),
            (
                json!({"recipient": "+447700900123", "channel": "fax"}),
                "channel",
            ),
            (
                json!({"recipient": "+447700900123", "source": ""}),
                "source",
            ),
            (
                json!({"recipient": "+447700900123", "source": "a\nb"}),
                "source",
            ),
            (json!({"recipient": "+447700900123", "sauce": "x"}), "sauce"),
        ] {
            let answer = client.post(PATH, &body).await;
            assert_eq!(wrong_field(&answer), field, "{body}");
            assert!(!answer.body.to_string().contains("S3NTINEL"), "{answer:?}");
        }
        for path in [
            "nobody",
            "%FF",
            "07700900123",
            "x%40y%40z",
            "+447700900123?channel=fax",
        ] {
            assert_eq!(
                client.get(&format!("{PATH}/{path}")).await.status,
                422,
                "{path}"
            );
            assert_eq!(
                client.delete(&format!("{PATH}/{path}")).await.status,
                422,
                "{path}"
            );
        }
        assert!(client.all(PATH).await.is_empty());
    })
    .await;
}

fn inbound(channel: &str, from: &str, body: &str) -> Value {
    json!({"channel": channel, "from": from, "to": "12345", "body": body})
}

/// F5-27: each of these replies was missed, or taken for one, by somebody.
#[tokio::test]
async fn replies_are_read_as_people_write_them() {
    on_both("api-inbound", async |client: Client<'_>| {
        for (place, (reply, action, review)) in [
            ("stop", "opted_out", false),
            (" Stop. ", "opted_out", false),
            ("STOP!", "opted_out", false),
            ("ＳＴＯＰ", "opted_out", false),
            ("OPT OUT", "opted_out", false),
            ("revoke", "opted_out", false),
            ("Stop. Thank you", "opted_out", false),
            ("Arrêt", "opted_out", false),
            ("退订", "opted_out", false),
            ("Please don't stop", "none", true),
            ("see you at the end", "none", false),
            ("", "none", false),
            ("a\u{0}b", "none", false),
            ("HELP", "help", false),
            ("YES", "opted_in", false),
        ]
        .into_iter()
        .enumerate()
        {
            let from = format!("+4477009001{place:02}");
            let answer = client.post(INBOUND, &inbound("sms", &from, reply)).await;
            let data = &answer.body["data"];
            assert_eq!(
                (&data["action"], &data["review"]),
                (&json!(action), &json!(review)),
                "{reply}"
            );
            assert_eq!(data["changed"], action == "opted_out", "{reply}");
            let expected = if action == "opted_out" {
                "RECIPIENT_OPTED_OUT"
            } else {
                ""
            };
            assert_eq!(code_of_sending(&client, &from).await, expected, "{reply}");
        }
    })
    .await;
}

#[tokio::test]
async fn whoever_stopped_by_telephone_stopped_everything_and_can_start_again() {
    on_both("api-inbound-again", async |client: Client<'_>| {
        let from = "+44 7700 900123";
        let stop = client
            .post(INBOUND, &inbound("whatsapp", from, "Stop"))
            .await;
        let data = &stop.body["data"];
        assert_eq!(
            (&data["channel"], &data["keyword"]),
            (&json!("all"), &json!("stop"))
        );
        assert_eq!(data["changed"], true);
        let twice = client.post(INBOUND, &inbound("sms", from, "STOP")).await;
        assert_eq!(twice.body["data"]["changed"], false);
        let shown = client.get(&format!("{PATH}/+447700900123")).await;
        assert_eq!(shown.body["data"][0]["source"], "replied stop by whatsapp");
        client
            .post(PATH, &json!({"recipient": from, "channel": "sms"}))
            .await;
        client
            .post(PATH, &json!({"recipient": from, "channel": "voice"}))
            .await;
        let start = client.post(INBOUND, &inbound("sms", from, "Start")).await;
        assert_eq!(start.body["data"]["changed"], true);
        assert_eq!(code_of_sending(&client, "+447700900123").await, "");
        let left = client.get(&format!("{PATH}/+447700900123")).await;
        assert_eq!(
            left.body["data"].as_array().unwrap().len(),
            1,
            "calls are another matter"
        );

        let mail = inbound("email", "Ann@Example.org", "unsubscribe");
        assert_eq!(
            client.post(INBOUND, &mail).await.body["data"]["channel"],
            "email"
        );
        for (body, field) in [
            (inbound("fax", from, "stop"), "channel"),
            (inbound("sms", "nobody", "stop"), "from"),
            (inbound("email", "Ann <a@b.org>", "stop"), "from"),
            (json!({"channel": "sms", "from": from}), "body"),
            (json!({"channel": "sms", "from": from, "body": 1}), "body"),
        ] {
            assert_eq!(
                wrong_field(&client.post(INBOUND, &body).await),
                field,
                "{body}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn an_operator_can_add_words() {
    let config =
        WorkerConfig::new("unused").set("INBOUND__OPT_OUT_WORDS", "genug werbung,ya basta");
    let dev = ApiServer::dev_with(&config).await;
    let client = Client {
        api: &dev,
        key: DEV_KEY,
        account: "demo",
    };
    let number = "+447700900123";
    let answer = client
        .post(INBOUND, &inbound("sms", number, "GENUG Werbung!"))
        .await;
    assert_eq!(answer.body["data"]["keyword"], "genug werbung");
    assert_eq!(
        code_of_sending(&client, number).await,
        "RECIPIENT_OPTED_OUT"
    );
    dev.process.stop().await;
}

/// F5-09: whoever opts out while messages are on their way gets none of them, by no lane.
#[tokio::test]
async fn what_is_queued_already_ends_as_refused() {
    let (scene, database) = Scene::with_database("api-opt-out-queued").await;
    let key = issue_key(&database, ACCOUNT).await;
    scene.declare().await;
    let api = ApiServer::start(&scene.config).await;
    let client = Client {
        api: &api,
        key: &key,
        account: ACCOUNT,
    };
    let number = "+447700900123";
    let mut ids = Vec::new();
    for priority in ["high", "low", "high"] {
        let sent = client.send_to(number, json!({"priority": priority})).await;
        ids.push(sent.message_id());
    }
    let later = json!({"not_before": "2020-01-01T00:00:00Z"});
    ids.push(client.send_to(number, later).await.message_id());
    let stop = client.post(INBOUND, &inbound("sms", number, "STOP")).await;
    assert_eq!(stop.body["data"]["changed"], true);
    let worker = Worker::start(&scene.config).await;
    let records = Records::of(database.pool());
    records
        .await_entries(ids.len(), Duration::from_secs(20))
        .await;
    assert_eq!(records.ended("refused", "opted_out").await, ids.len());
    assert_eq!(scene.stub.count(), 0);
    let shown = client.await_status(&ids[0], "refused").await;
    assert_eq!(shown["reason"], "opted_out");
    worker.stop().await;
    api.process.stop().await;
    scene.end().await;
}
