//! Frequency caps over HTTP.

use futures_util::future::join_all;
use serde_json::json;

use super::resources::{Client, SOON, Services, on_both, wrong_field};
use crate::support::eventually;

const PATH: &str = "/api/v1/frequency-caps";
const NUMBER: &str = "+447700900123";

#[tokio::test]
async fn a_cap_holds_from_its_laying_down_to_its_removal() {
    on_both("api-caps", async |client: Client<'_>| {
        let terms = json!({"limit": 1, "window_seconds": 86_400});
        let made = client.put(&format!("{PATH}/daily"), &terms).await;
        assert_eq!(made.status, 201);
        let view = json!({"name": "daily", "limit": 1, "window_seconds": 86_400, "channel": null,
            "category": null});
        assert_eq!(made.body["data"], view);
        assert_eq!(
            client.get(&format!("{PATH}/daily")).await.body["data"],
            view
        );
        let capped = async || {
            let answer = client.send_to(NUMBER, json!({"priority": "high"})).await;
            answer.code() == "FREQUENCY_CAP_EXCEEDED"
        };
        eventually("the cap holds", SOON, capped).await;
        let told = client.send_to(NUMBER, json!({})).await;
        assert_eq!(told.status, 429);
        let details = &told.body["error"]["details"];
        assert_eq!(
            (&details["cap"], &details["limit"]),
            (&json!("daily"), &json!(1))
        );

        let wider = json!({"limit": 9999, "window_seconds": 60, "channel": "sms", "category": "x"});
        let replaced = client.put(&format!("{PATH}/daily"), &wider).await;
        assert_eq!(replaced.status, 200);
        assert_eq!(replaced.body["data"]["category"], "x");
        let passes = async || client.send_to(NUMBER, json!({})).await.status == 202;
        eventually("the wider cap lets it pass", SOON, passes).await;

        client.put(&format!("{PATH}/hourly"), &terms).await;
        client.put(&format!("{PATH}/a-1"), &terms).await;
        let names: Vec<_> = client.all(&format!("{PATH}?limit=1")).await;
        let names: Vec<_> = names
            .iter()
            .map(|one| one["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["a-1", "daily", "hourly"]);
        for name in names {
            assert_eq!(client.delete(&format!("{PATH}/{name}")).await.status, 200);
            assert_eq!(client.delete(&format!("{PATH}/{name}")).await.status, 404);
            assert_eq!(client.get(&format!("{PATH}/{name}")).await.status, 404);
        }
        assert!(client.all(PATH).await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn terms_that_make_no_sense_are_named() {
    on_both("api-caps-wrong", async |client: Client<'_>| {
        for (terms, field) in [
            (json!({"limit": 0, "window_seconds": 60}), "limit"),
            (json!({"limit": 10_001, "window_seconds": 60}), "limit"),
            (json!({"limit": -1, "window_seconds": 60}), "limit"),
            (json!({"limit": 1.5, "window_seconds": 60}), "limit"),
            (json!({"limit": 1, "window_seconds": 0}), "window_seconds"),
            (
                json!({"limit": 1, "window_seconds": 31_622_401}),
                "window_seconds",
            ),
            (
                json!({"limit": 1, "window_seconds": 60, "channel": "all"}),
                "channel",
            ),
            (
                json!({"limit": 1, "window_seconds": 60, "category": ""}),
                "category",
            ),
            (
                json!({"limit": 1, "window_seconds": 60, "category": "a\u{0}"}),
                "category",
            ),
        ] {
            let answer = client.put(&format!("{PATH}/x"), &terms).await;
            assert_eq!(wrong_field(&answer), field, "{terms}");
        }
        let good = json!({"limit": 1, "window_seconds": 60});
        for name in ["a%20b", "%C3%A4", &"x".repeat(65), "a%2Fb"] {
            let path = format!("{PATH}/{name}");
            assert_eq!(wrong_field(&client.put(&path, &good).await), "name");
            assert_eq!(wrong_field(&client.get(&path).await), "name");
        }
        // Each cap costs every message a look. Who lays them down at once gets no more of them.
        let put = async |number| {
            let path = format!("{PATH}/cap-{number}");
            client.put(&path, &good).await.status.as_u16()
        };
        for number in 0..45 {
            assert_eq!(put(number).await, 201);
        }
        let at_once = join_all((100..110).map(put)).await;
        let made = at_once.iter().filter(|status| **status == 201);
        assert_eq!(made.count(), 5, "{at_once:?}");
        let one_more = client.put(&format!("{PATH}/cap-50"), &good).await;
        assert_eq!(
            (one_more.status.as_u16(), one_more.code()),
            (409, "CONFLICT")
        );
        let known = client.put(&format!("{PATH}/cap-7"), &good).await;
        assert_eq!(known.status, 200);
    })
    .await;
}

/// A key must not be a way around the operator's word.
#[tokio::test]
async fn an_account_that_is_refused_lists_itself_by_no_cap() {
    let services = Services::start("api-caps-refused").await;
    let client = services.client();
    let refuse = "UPDATE directory SET unknown_accounts = 'refuse'";
    services.database.execute(refuse).await;
    let refused = async || client.send_to(NUMBER, json!({})).await.code() == "UNKNOWN_ACCOUNT";
    eventually("the account is refused", SOON, refused).await;
    let terms = json!({"limit": 1, "window_seconds": 60});
    let put = client.put(&format!("{PATH}/daily"), &terms).await;
    assert_eq!((put.status.as_u16(), put.code()), (403, "UNKNOWN_ACCOUNT"));
    let accounts = sqlx::query_scalar("SELECT count(*) FROM accounts");
    let accounts: i64 = accounts.fetch_one(services.database.pool()).await.unwrap();
    assert_eq!(accounts, 0);
    services.stop().await;
}
