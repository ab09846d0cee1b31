//! What became of messages.

use std::collections::HashSet;

use lanekeeper::accounts::keys::ApiKey;
use serde_json::{Value, json};

use super::resources::{Client, Services, on_both, wrong_field};
use crate::support::api::{ApiServer, answer, issue_key, message};
use crate::support::scene::{ACCOUNT, Scene};

const LIST: &str = "/api/v1/messages";

fn id_of(entry: &Value) -> &str {
    entry["message_id"].as_str().unwrap()
}

fn gate<'a>(view: &'a Value, name: &str) -> &'a str {
    let gates = view["gates"].as_array().unwrap();
    let step = gates.iter().find(|step| step["gate"] == name).unwrap();
    step["answer"].as_str().unwrap()
}

#[tokio::test]
async fn a_message_is_shown_from_its_acceptance_to_its_end() {
    on_both("api-shown", async |client: Client<'_>| {
        let number = "+447700900123";
        let sent = client.send_to(number, json!({"priority": "high", "campaign_id": "spring"}));
        let id = sent.await.message_id();
        let known = client.get(&format!("{LIST}/{id}")).await;
        assert_eq!(known.status, 200, "it is known at once");
        let view = client.await_status(&id, "dispatched").await;
        assert_eq!(view["message_id"], *id);
        assert_eq!(view["traffic_lane"], "transactional");
        assert_eq!(view["lane_rule"], "priority");
        assert_eq!(view["campaign_id"], "spring");
        assert_eq!(view["channel"], "sms");
        assert_eq!(gate(&view, "ceilings"), "passed");
        assert_eq!(view["waiting"], Value::Null);
        assert!(!view.to_string().contains("7700900123"), "{view}");

        let waits = client.send_to(number, json!({"not_before": "2099-01-01T00:00:00Z"}));
        let id = waits.await.message_id();
        let view = client.await_status(&id, "waiting").await;
        assert_eq!(view["reason"], "not_before");
        assert_eq!(view["waiting"]["until"], "2099-01-01T00:00:00.000Z");
        assert_eq!(view["channel"], "sms");
        assert_eq!(gate(&view, "not_before"), "waits");
        assert_eq!(gate(&view, "ceilings"), "not_asked");

        for unknown in [
            "msg_00000000000000000000000000000000",
            "no%20id",
            "%00",
            "x",
        ] {
            let answer = client.get(&format!("{LIST}/{unknown}")).await;
            assert_eq!((answer.status.as_u16(), answer.code()), (404, "NOT_FOUND"));
        }
    })
    .await;
}

#[tokio::test]
async fn the_list_shows_each_message_once_the_newest_first() {
    on_both("api-listed", async |client: Client<'_>| {
        let mut sent = HashSet::new();
        for number in 0..23 {
            let campaign = if number % 5 == 0 { "rare" } else { "usual" };
            let more = json!({"priority": "high", "campaign_id": campaign});
            let id = client.send_to("+447700900123", more).await.message_id();
            sent.insert(id);
        }
        for id in &sent {
            client.await_status(id, "dispatched").await;
        }
        for limit in [1, 7, 23, 200] {
            let all = client.all(&format!("{LIST}?limit={limit}")).await;
            let ids: HashSet<_> = all.iter().map(|one| id_of(one).to_owned()).collect();
            assert_eq!((all.len(), &ids), (23, &sent));
            let settled = all.iter().map(|one| one["settled_at"].as_str().unwrap());
            assert!(settled.is_sorted_by(|one, next| one >= next), "{limit}");
        }
        for (filter, expected) in [
            ("campaign_id=rare", 5),
            ("campaign_id=rare&lane=transactional&outcome=dispatched", 5),
            ("campaign_id=none", 0),
            ("lane=marketing", 0),
            ("outcome=failed", 0),
            ("batch_id=none", 0),
        ] {
            let all = client.all(&format!("{LIST}?limit=2&{filter}")).await;
            assert_eq!(all.len(), expected, "{filter}");
        }
    })
    .await;
}

#[tokio::test]
async fn parameters_that_cannot_be_right_are_named() {
    on_both("api-list-wrong", async |client: Client<'_>| {
        for (query, field) in [
            ("limit=0", "limit"),
            ("limit=201", "limit"),
            ("limit=x", "limit"),
            ("limit=99999999", "limit"),
            ("lane=fast", "lane"),
            ("lane=", "lane"),
            ("outcome=sent", "outcome"),
            ("campaign_id=", "campaign_id"),
            ("batch_id=%00", "batch_id"),
            ("cursor=", "cursor"),
            ("cursor=zz", "cursor"),
            ("cursor=7a0a7a", "cursor"),
            (
                "cursor=393939393939393939393939393939393939390a61",
                "cursor",
            ),
        ] {
            let answer = client.get(&format!("{LIST}?{query}")).await;
            assert_eq!(wrong_field(&answer), field, "{query}");
        }
        let unknown = client.get(&format!("{LIST}?status=sent")).await;
        assert_eq!(unknown.status, 422, "a misspelt filter shows nothing");
    })
    .await;
}

/// Whatever the ledger holds, a page costs the same: what is rare is found over several pages.
#[tokio::test]
async fn a_rare_message_is_found_in_a_large_ledger() {
    let services = Services::start("api-rare").await;
    // Thirty-two rows to the millisecond, over six days, and another account's among them.
    let fill =
        "INSERT INTO ledger (account_id, id, day, lane, lane_rule, channel, outcome, attempts,
            sheds, settled_at, campaign_id)
        SELECT CASE WHEN n % 4 = 3 THEN 'other' ELSE 'acme' END, 'job-' || n,
            (at AT TIME ZONE 'UTC')::date, 'marketing', 'default', 'sms',
            CASE WHEN n IN (1, 6001, 11001) THEN 'failed' ELSE 'dispatched' END, 1, 0, at, 'c'
        FROM generate_series(1, 12000) AS n,
            LATERAL (SELECT now() - interval '5 days' + n / 32 * interval '1 ms'
                + n / 2000 * interval '1 day' AS exact) AS spread,
            LATERAL (SELECT date_trunc('milliseconds', exact) AS at) AS rounded";
    services.database.execute(fill).await;
    let client = services.client();
    let failed = client.all(&format!("{LIST}?outcome=failed&limit=50")).await;
    let ids: Vec<_> = failed.iter().map(id_of).collect();
    assert_eq!(ids, ["job-11001", "job-6001", "job-1"]);
    let all = client.all(&format!("{LIST}?limit=200")).await;
    let ids: HashSet<_> = all.iter().map(id_of).collect();
    assert_eq!((all.len(), ids.len()), (9_000, 9_000));
    let settled = all.iter().map(|one| one["settled_at"].as_str().unwrap());
    assert!(settled.is_sorted_by(|one, next| one >= next));
    services.stop().await;
}

#[tokio::test]
async fn while_redis_is_away_what_is_written_down_is_still_shown() {
    let (scene, database) = Scene::with_database("api-shown-away").await;
    let key = issue_key(&database, ACCOUNT).await;
    let scene = scene.set("REDIS__URL", "redis://127.0.0.1:1");
    let api = ApiServer::start(&scene.config).await;
    database
        .execute(
            "INSERT INTO ledger (account_id, id, day, lane, lane_rule, channel, outcome, attempts,
                sheds, settled_at)
             VALUES ('acme', 'ended', '2026-01-01', 'marketing', 'default', 'sms', 'dispatched', 1, 0,
                '2026-01-01T00:00:00Z')",
        )
        .await;
    let client = Client {
        api: &api,
        key: &key,
        account: ACCOUNT,
    };
    let shown = client.get(&format!("{LIST}/ended")).await;
    assert_eq!(shown.body["data"]["status"], "dispatched");
    // Nobody can say that there is no such message.
    let unknown = client.get(&format!("{LIST}/unknown")).await;
    assert_eq!(
        (unknown.status.as_u16(), unknown.code()),
        (503, "SERVICE_UNAVAILABLE")
    );
    assert_eq!(unknown.header("retry-after"), "1");
    // This process has let it in by its own counter.
    let sent = api.send(&key, &message("high")).await.message_id();
    let shown = client.get(&format!("{LIST}/{sent}")).await;
    assert_eq!(shown.body["data"]["status"], "queued");
    api.process.stop().await;
    scene.end().await;
}

#[tokio::test]
async fn a_message_that_nobody_takes_up_is_queued() {
    let (scene, database) = Scene::with_database("api-shown-queued").await;
    let key = issue_key(&database, ACCOUNT).await;
    scene.declare().await;
    let api = ApiServer::start(&scene.config).await;
    let client = Client {
        api: &api,
        key: &key,
        account: ACCOUNT,
    };
    let id = api.send(&key, &message("high")).await.message_id();
    let shown = client.get(&format!("{LIST}/{id}")).await;
    let view = &shown.body["data"];
    assert_eq!(view["status"], "queued");
    assert!(view["admitted_at"].is_string());
    assert_eq!(gate(view, "suppression"), "passed");
    // With a key it is known even when its claim is lost.
    let keyed = api
        .sending(&key, &message("high"))
        .header("Idempotency-Key", "one");
    let id = answer(keyed).await.message_id();
    let other = ApiServer::start(&scene.config.clone().set("REDIS__PREFIX", "t-lost")).await;
    let elsewhere = Client {
        api: &other,
        key: &key,
        account: ACCOUNT,
    };
    let shown = elsewhere.get(&format!("{LIST}/{id}")).await;
    assert_eq!(shown.body["data"]["status"], "queued");
    assert!(ApiKey::parse(key.as_bytes()).is_ok());
    other.process.stop().await;
    api.process.stop().await;
    scene.end().await;
}
